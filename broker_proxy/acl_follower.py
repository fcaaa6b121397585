"""How a broker learns ACLs: all of them when it connects, then each that a notification names.

kazoo forgets watches at every reconnect, and notifications are purged: so everything is read
again then. Readings follow one another, or an older one could overwrite a newer one.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping, Sequence
from typing import Final, Protocol, cast

from bridgehead.authorizer import ResourcePattern
from cluster_model.acl_znodes import AclChangeZnode, AclZnode
from cluster_model.acls import Entries
from cluster_model.znodes import ZnodeContentError
from zookeeper_client.acl_reading import StoredAcls, read_acls, rules_of
from zookeeper_client.session import NoSuchZnodeError, ZooKeeperSession
from zookeeper_client.wire import ReadData, ZnodeData

_log = logging.getLogger(__name__)


_Rules = tuple[Entries, int | None]  # of one pattern, with its znode's version; None: it is gone
# What is read is as of one moment once nothing new is told of; nobody is kept waiting for that.
_ROUNDS_MAX: Final = 10
# Called once, when a watched znode gets another child.
Watch = Callable[[], None]


class AclListener(Protocol):
    """Whom the broker session tells what it read. Called on the loop; returns at once."""

    def acls_read(self, stored: StoredAcls) -> None:
        """Everything was read."""
        ...

    def acl_changed(self, pattern: ResourcePattern, entries: Entries, version: int | None) -> None:
        """One pattern was read again; `version` is its znode's, None: it is gone."""
        ...

    def acls_are_of(self, zxid: int | None) -> None:
        """What was told is as of this transaction; None: of no one moment."""
        ...


class AclFollower:
    """The watcher calls it when it connects and when a watch fires."""

    def __init__(self, listener: AclListener) -> None:
        self._listener = listener
        self._last = dict.fromkeys(AclChangeZnode.parents, "")
        self._read_in: ZooKeeperSession | None = None
        # Parents with a watch that has not fired: one each, or they would multiply.
        self._watched: set[str] = set()
        self._lock = asyncio.Lock()

    async def follow(
        self, session: ZooKeeperSession, again: Watch | None, *, connected: bool = False
    ) -> None:
        """Read what is new and, where `again` is given, watch for more.

        In a new session everything is read. `connected`: the session has connected (again), and
        no watch of before counts.

        Raises:
            ConnectionLostError: the session broke; the next call begins where this one did.
        """
        async with self._lock:
            if connected:
                self._watched.clear()
            stored, last = None, dict(self._last)
            if session is not self._read_in:
                # Watched before it is read: what changes meanwhile is read once more.
                for parent in last:
                    last[parent] = max(await self._names(session, parent, again), default="")
                stored = await read_acls(session.read)
            changed: dict[ResourcePattern, _Rules] = {}
            for _ in range(_ROUNDS_MAX):
                as_of: int | None = session.last_zxid
                if (patterns := await self._new_patterns(session, again, last)) is None:
                    break
                changed |= await _read_again(session, patterns)
            else:
                as_of = None
            self._tell(stored, changed, as_of)
            self._last, self._read_in = last, session

    def _tell(
        self,
        stored: StoredAcls | None,
        changed: Mapping[ResourcePattern, _Rules],
        as_of: int | None,
    ) -> None:
        if stored is not None:
            _tell_refused(stored.refused)
            self._listener.acls_read(stored)
        for pattern, (entries, version) in changed.items():
            self._listener.acl_changed(pattern, entries, version)
        self._listener.acls_are_of(as_of)

    async def _new_patterns(
        self, session: ZooKeeperSession, again: Watch | None, last: dict[str, str]
    ) -> list[ResourcePattern] | None:
        """Return what notifications name that came after `last`, and advance it; None: none did."""
        before, patterns = dict(last), dict[ResourcePattern, None]()
        for parent in AclChangeZnode.parents:
            names = sorted(await self._names(session, parent, again))
            new = [name for name in names if name > last[parent]]
            last[parent] = max(new, default=last[parent])
            changes = await _data(session, [f"{parent}/{name}" for name in new])
            for name, znode in zip(new, changes, strict=True):
                try:
                    if znode is not None:  # Else purged: everybody had applied it.
                        patterns[AclChangeZnode.decode(parent, znode.data)] = None
                except ZnodeContentError as wrong:
                    _log.error("%s: %s", name, wrong)
        return None if last == before else list(patterns)

    async def _names(
        self, session: ZooKeeperSession, parent: str, again: Watch | None
    ) -> list[str]:
        watch: Watch | None = None
        if again is not None and parent not in self._watched:
            self._watched.add(parent)

            def watch() -> None:
                self._watched.discard(parent)
                again()

        try:
            return await session.children(parent, watch)
        except NoSuchZnodeError:
            self._watched.discard(parent)
            _log.error("%s is missing: ACLs are read again when this broker reconnects", parent)
            return []


async def _read_again(
    session: ZooKeeperSession, patterns: Sequence[ResourcePattern]
) -> dict[ResourcePattern, _Rules]:
    found = await _data(session, [AclZnode.path(pattern) for pattern in patterns])
    refused: list[str] = []
    rules: dict[ResourcePattern, _Rules] = {}
    for pattern, znode in zip(patterns, found, strict=True):
        if znode is None:
            rules[pattern] = (), None
        else:
            rules[pattern] = rules_of(pattern, znode.data, refused), znode.stat.version
    _tell_refused(refused)
    return rules


async def _data(session: ZooKeeperSession, paths: Sequence[str]) -> list[ZnodeData | None]:
    return cast(list[ZnodeData | None], await session.read([ReadData(path) for path in paths]))


def _tell_refused(refused: Sequence[str]) -> None:
    for text in refused:
        _log.error("%s", text)
