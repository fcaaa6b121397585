"""Follows Kafka's change notifications: sequential znodes that each name what has changed.

Configs, tokens and ACLs differ in what a notification names, and in how that is read. kazoo drops
watches at every reconnect, so they are set again then. Notifications are purged 15 minutes after
their creation.

A notification is new if the last listing did not have it. Sequence numbers are not compared: a
stray znode with a high number, or a folder that was deleted and created again, would hide all later
notifications. Znodes with foreign names are reported and ignored.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Final, Generic, NamedTuple, TypeVar, cast

from cluster_model.znodes.layout import notification_number
from cluster_model.znodes.values import ZnodeContentError, shortened
from zookeeper_client.session import NoSuchZnodeError, ZooKeeperSession
from zookeeper_client.wire import ReadData, ReadMany, ZnodeData

_log = logging.getLogger(__name__)
_NOT_LISTED: Final = -1
_MISSING: Final = 0
Key = TypeVar("Key")
Value = TypeVar("Value")
# Called once, when the children of a watched znode change.
Watch = Callable[[], None]


class Seen(NamedTuple):
    """The last listing of a folder of notifications."""

    names: frozenset[str] = frozenset()
    czxid: int = _NOT_LISTED  # of the folder; _MISSING if there was none


class News(NamedTuple, Generic[Key]):
    """What the notifications name that are new since a listing.

    `in_doubt`: more may have changed. A new notification was invalid, or was deleted before it was
    read, or the folder was. Then everything must be read again.
    """

    keys: list[Key]
    seen: Seen
    is_empty: bool
    in_doubt: bool


class Notifications(Generic[Key]):
    """The notifications in one folder."""

    def __init__(self, prefix: str, decode: Callable[[bytes | None], Key], if_missing: str) -> None:
        """`prefix`: the path of a notification, without its number.

        `decode` returns what a notification names, or raises ZnodeContentError. `if_missing` is the
        end of the log line for the case that the folder is missing.
        """
        self.parent, _, self._word = prefix.rpartition("/")
        self._decode = decode
        self._if_missing = if_missing
        self._foreign: frozenset[str] = frozenset()

    def _number(self, name: str) -> int | None:
        return notification_number(name, self._word)

    async def list(self, session: ZooKeeperSession, watch: Watch | None) -> frozenset[str] | None:
        """Return the names of the notifications, and watch them; None if the folder is missing.

        If it is missing, its creation is watched.
        """
        try:
            names = frozenset(await session.children(self.parent, watch))
        except NoSuchZnodeError:
            _log.error("%s is missing: %s", self.parent, self._if_missing)
            if watch is not None and await session.exists(self.parent, watch) is not None:
                watch()  # The folder was created between the two reads.
            return None
        foreign = frozenset(name for name in names if self._number(name) is None)
        if appeared := sorted(foreign - self._foreign):
            _log.error(
                "%s has foreign znodes (%d), for example %s: this broker ignores them; delete them",
                *(self.parent, len(foreign), shortened(appeared[0])),
            )
        self._foreign = foreign
        return names - foreign

    async def news(self, session: ZooKeeperSession, seen: Seen, watch: Watch | None) -> News[Key]:
        """List and read what is new since `seen`. Raises ConnectionLostError."""
        names = await self.list(session, watch)
        if names is None:
            return News([], Seen(czxid=_MISSING), is_empty=True, in_doubt=False)
        new = sorted(names - seen.names, key=lambda name: cast(int, self._number(name)))
        paths = [self.parent, *(f"{self.parent}/{name}" for name in new)]
        folder, *znodes = await read_data(session, paths)
        czxid = folder.stat.czxid if folder is not None else _MISSING
        in_doubt = seen.czxid not in (_NOT_LISTED, czxid)
        keys: dict[Key, None] = {}
        for path, znode in zip(paths[1:], znodes, strict=True):
            if znode is None:
                in_doubt = True
                continue
            try:
                keys[self._decode(znode.data)] = None
            except ZnodeContentError as error:
                _log.error("%s: %s; everything is read again", path, error)
                in_doubt = True
        return News(list(keys), Seen(names, czxid), is_empty=not new, in_doubt=in_doubt)


class ChangeFollower(Generic[Key, Value]):
    """Reads what new notifications name, and applies it.

    Only one read runs at a time: an older read must not overwrite a newer one.
    """

    def __init__(
        self,
        notifications: Notifications[Key],
        read: Callable[[ReadMany, Sequence[Key]], Awaitable[Mapping[Key, Value]]],
        apply: Callable[[Key, Value], None],
        read_all: Callable[[ReadMany], Awaitable[None]],
        *,
        in_each_session: bool,
    ) -> None:
        """`read_all` reads and applies everything, when the notifications do not suffice.

        With `in_each_session`, each new session does so: notifications may have been purged while
        there was no session.
        """
        self._notifications = notifications
        self._read = read
        self._apply = apply
        self._read_all = read_all
        self._in_each_session = in_each_session
        self._seen = Seen()
        self._read_in: ZooKeeperSession | None = None
        self._lock = asyncio.Lock()

    async def follow(self, session: ZooKeeperSession, again: Watch | None) -> None:
        """Apply changes that are new since the last call. `again` is called at the next one.

        Raises:
            ConnectionLostError: the connection broke. The next call reads the same changes again.
        """
        async with self._lock:
            news = await self._notifications.news(session, self._seen, again)
            changed: Mapping[Key, Value] = {}
            if news.in_doubt or (self._in_each_session and session is not self._read_in):
                await self._read_all(session.read)
                self._read_in = session
            elif news.keys:
                changed = await self._read(session.read, news.keys)
            self._seen = news.seen
            for key, value in changed.items():
                self._apply(key, value)


async def read_data(session: ZooKeeperSession, paths: Sequence[str]) -> list[ZnodeData | None]:
    """Read znodes; None for those that are missing."""
    return cast(list[ZnodeData | None], await session.read([ReadData(path) for path in paths]))


def log_invalid(invalid: Sequence[str]) -> None:
    """Log the errors of invalid znodes."""
    for text in invalid:
        _log.error("%s", text)
