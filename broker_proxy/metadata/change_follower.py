"""Follows Kafka's change notifications: sequential znodes that each name what has changed.

Configs, tokens and ACLs differ in what a notification names, and in how that is read. kazoo drops
watches at every reconnect, so they are set again then. Notifications are purged 15 minutes after
their creation.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Generic, TypeVar, cast

from cluster_model.znodes.values import ZnodeContentError
from zookeeper_client.session import NoSuchZnodeError, ZooKeeperSession
from zookeeper_client.wire import ReadData, ReadMany, ZnodeData

_log = logging.getLogger(__name__)
Key = TypeVar("Key")
Value = TypeVar("Value")
# Called once, when the children of a watched znode change.
Watch = Callable[[], None]


class Notifications(Generic[Key]):
    """The notifications below one znode."""

    def __init__(
        self, parent: str, decode: Callable[[bytes | None], Key | None], if_missing: str
    ) -> None:
        """`decode` returns what a notification names, or None if it is to be ignored.

        `if_missing` is the end of the log line for the case that `parent` is missing.
        """
        self.parent = parent
        self._decode = decode
        self._if_missing = if_missing

    async def names(self, session: ZooKeeperSession, watch: Watch | None) -> list[str] | None:
        """List and watch the notifications; None if the parent is missing."""
        try:
            return await session.children(self.parent, watch)
        except NoSuchZnodeError:
            _log.error("%s is missing: %s", self.parent, self._if_missing)
            return None

    @staticmethod
    def newer(names: Sequence[str], last: str) -> list[str]:
        """Return the names of the notifications after `last`, oldest first."""
        return sorted(name for name in names if name > last)

    async def read(self, session: ZooKeeperSession, names: Sequence[str]) -> list[Key]:
        """Return what these notifications name. Purged and invalid ones name nothing."""
        keys: dict[Key, None] = {}
        paths = [f"{self.parent}/{name}" for name in names]
        for path, znode in zip(paths, await read_data(session, paths), strict=True):
            if znode is not None:
                try:
                    key = self._decode(znode.data)
                except ZnodeContentError as error:
                    _log.error("%s: %s", path, error)
                    continue
                if key is not None:
                    keys[key] = None
        return list(keys)


class ChangeFollower(Generic[Key, Value]):
    """Reads what new notifications name, and applies it.

    Only one read runs at a time: an older read must not overwrite a newer one.
    """

    def __init__(
        self,
        notifications: Notifications[Key],
        read: Callable[[ReadMany, Sequence[Key]], Awaitable[Mapping[Key, Value]]],
        apply: Callable[[Key, Value], None],
        read_all: Callable[[ReadMany], Awaitable[None]] | None = None,
    ) -> None:
        """If `read_all` is given, each new session reads and applies everything with it.

        It makes up for notifications that were purged while there was no session.
        """
        self._notifications = notifications
        self._read = read
        self._apply = apply
        self._read_all = read_all
        self._last = ""  # the name of the newest notification that was applied
        self._read_in: ZooKeeperSession | None = None
        self._lock = asyncio.Lock()

    async def follow(self, session: ZooKeeperSession, again: Watch | None) -> None:
        """Apply changes that are new since the last call. `again` is called at the next one.

        Raises:
            ConnectionLostError: the connection broke. The next call reads the same changes again.
        """
        async with self._lock:
            names = await self._notifications.names(session, again)
            if names is None:
                return
            new = self._notifications.newer(names, self._last)
            changed: Mapping[Key, Value] = {}
            if self._read_all is not None and session is not self._read_in:
                await self._read_all(session.read)
                self._read_in = session
            elif new:
                changed = await self._read(
                    session.read, await self._notifications.read(session, new)
                )
            if new:
                self._last = new[-1]
            for key, value in changed.items():
                self._apply(key, value)


async def read_data(session: ZooKeeperSession, paths: Sequence[str]) -> list[ZnodeData | None]:
    """Read znodes; None for those that are missing."""
    return cast(list[ZnodeData | None], await session.read([ReadData(path) for path in paths]))


def log_invalid(invalid: Sequence[str]) -> None:
    """Log the errors of invalid znodes."""
    for text in invalid:
        _log.error("%s", text)
