"""Follows Kafka's change notifications: sequential znodes that each name what has changed.

Configs, tokens and ACLs differ in what a notification names, and in how that is read. Watches end
with the connection, so they are set again at every reconnect, and the notifications are listed.
Notifications are purged 15 minutes after their creation, so there may be many. Those of configs and
tokens are therefore not listed after each change: a persistent watch names the new ones.

A notification is new if the last listing did not have it. Sequence numbers are not compared: a
stray znode with a high number, or a folder that was deleted and created again, would hide all later
notifications. Znodes with foreign names are reported and ignored.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence, Set
from functools import partial
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

    names: Set[str] = frozenset()
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
        self._listed: frozenset[str] = frozenset()  # those of the last listing
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
        # There may be many, so a name is looked at only when it appears.
        foreign = frozenset(name for name in names - self._listed if self._number(name) is None)
        if appeared := sorted(foreign - self._foreign):
            _log.error(
                "%s has foreign znodes (%d), for example %s: this broker ignores them; delete them",
                *(self.parent, len(foreign), shortened(appeared[0])),
            )
        self._listed, self._foreign = (names - foreign if foreign else names), foreign
        return self._listed

    async def news(self, session: ZooKeeperSession, seen: Seen, watch: Watch | None) -> News[Key]:
        """List and read what is new since `seen`. Raises ConnectionLostError."""
        names = await self.list(session, watch)
        if names is None:
            return News([], Seen(czxid=_MISSING), is_empty=True, in_doubt=False)
        return await self.read(session, seen, names, names - seen.names)

    def are_ours(self, names: Iterable[str]) -> bool:
        """Return whether these are names of notifications."""
        return all(self._number(name) is not None for name in names)

    async def read(
        self,
        session: ZooKeeperSession,
        seen: Seen,
        names: frozenset[str],
        created: Iterable[str],
    ) -> News[Key]:
        """Read what is new since `seen`. `names` are all names. Raises ConnectionLostError."""
        new = sorted(created, key=lambda name: cast(int, self._number(name)))
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
        self._names: set[str] = set()  # notifications that are applied
        self._czxid = _NOT_LISTED
        self._changed: list[str] = []  # paths that the persistent watch has named since
        self._must_list = True
        self._read_in: ZooKeeperSession | None = None
        self._lock = asyncio.Lock()

    async def follow(self, session: ZooKeeperSession, again: Watch | None) -> None:
        """Apply changes that are new since the last call. `again` is called at the next one.

        Raises:
            ConnectionLostError: the connection broke. The next call reads the same changes again.
        """
        async with self._lock:
            if again is not None and not session.watches_below(self._notifications.parent):
                self._must_list = True
                self._changed.clear()
                watch = partial(self._znode_changed, again)
                await session.watch_below(self._notifications.parent, watch)
            changed, self._changed = self._changed, []
            created, deleted = self._children(changed)
            if again is None or self._must_list or not self._notifications.are_ours(created):
                # If the connection breaks, what the watch has named is listed, too.
                self._must_list = True
                await self._list(session)
                self._must_list = False
                return
            self._must_list = bool(created)
            if created:
                await self._apply_news(session, await self._news_of(session, created))
            self._names |= created
            self._names -= deleted
            self._must_list = False

    def _znode_changed(self, again: Watch, path: str) -> None:
        self._changed.append(path)
        if len(self._changed) == 1:
            again()

    def _children(self, paths: Sequence[str]) -> tuple[set[str], set[str]]:
        """Divide changed paths into names that are not known, and names that are.

        A notification is created and deleted, but not written. The name of the folder itself
        becomes "", which no notification has.
        """
        prefix = self._notifications.parent + "/"
        names = {path.removeprefix(prefix) if path.startswith(prefix) else "" for path in paths}
        return names - self._names, names & self._names

    async def _list(self, session: ZooKeeperSession) -> None:
        seen = Seen(self._names, self._czxid)
        news = await self._notifications.news(session, seen, None)
        await self._apply_news(session, news)
        self._names, self._czxid = set(news.seen.names), news.seen.czxid

    async def _news_of(self, session: ZooKeeperSession, created: Iterable[str]) -> News[Key]:
        seen = Seen(self._names, self._czxid)
        return await self._notifications.read(session, seen, frozenset(), created)

    async def _apply_news(self, session: ZooKeeperSession, news: News[Key]) -> None:
        changed: Mapping[Key, Value] = {}
        if news.in_doubt or (self._in_each_session and session is not self._read_in):
            await self._read_all(session.read)
            self._read_in = session
        elif news.keys:
            changed = await self._read(session.read, news.keys)
        for key, value in changed.items():
            self._apply(key, value)


async def read_data(session: ZooKeeperSession, paths: Sequence[str]) -> list[ZnodeData | None]:
    """Read znodes; None for those that are missing."""
    return cast(list[ZnodeData | None], await session.read([ReadData(path) for path in paths]))


def log_invalid(invalid: Sequence[str]) -> None:
    """Log the errors of invalid znodes."""
    for text in invalid:
        _log.error("%s", text)
