"""Keeps a broker's ACLs current: reads all ACLs in each new session, then those that change.

kazoo drops watches at every reconnect, so they are set again. In a new session the follower reads
all ACLs, because notifications that it missed may have been purged meanwhile. Only one read runs at
a time: an older read must not overwrite a newer one.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping, Sequence
from typing import Final, NamedTuple, Protocol, cast

from bridgehead.authorizer import ResourcePattern
from cluster_model.acls.bindings import Entries
from cluster_model.acls.znodes import AclChangeZnode
from cluster_model.znodes.layout import ZnodeContentError
from zookeeper_client.acl_reading import StoredAcls, StoredRules, read_acls, read_some_acls
from zookeeper_client.session import NoSuchZnodeError, ZooKeeperSession
from zookeeper_client.wire import ReadData, ZnodeData

_log = logging.getLogger(__name__)


# The ACLs are those at one zxid only if no notification arrives while they are read. The follower
# reads again until no notification arrives, but at most this many times.
_ROUNDS_MAX: Final = 10
# Called once, when the children of a watched znode change.
Watch = Callable[[], None]


class AclListener(Protocol):
    """Receives the ACLs. Called on the event loop; must not block."""

    def acls_read(self, stored: StoredAcls) -> None:
        """All ACLs were read."""

    def acl_changed(self, pattern: ResourcePattern, entries: Entries, version: int | None) -> None:
        """A pattern was read again. `version` is its znode's, or None if the znode was deleted."""

    def acls_are_of(self, zxid: int | None) -> None:
        """The ACLs are those at `zxid`; None: they were read at different zxids."""


class _Seen(NamedTuple):
    """What the follower has seen below one parent znode of notifications."""

    name: str  # of the newest notification
    pzxid: int  # of the parent, before its children were listed


class AclFollower:
    """Reads the ACLs. ZooKeeperWatcher calls it after each connect and when a watch fires."""

    def __init__(self, listener: AclListener) -> None:
        self._listener = listener
        self._last = dict.fromkeys(AclChangeZnode.parents, _Seen("", -1))
        self._read_in: ZooKeeperSession | None = None
        # Parents whose watch has not fired yet. They get no second watch: it would fire, too.
        self._watched: set[str] = set()
        self._has_fired = False
        self._lock = asyncio.Lock()

    async def follow(
        self, session: ZooKeeperSession, again: Watch | None, *, connected: bool = False
    ) -> None:
        """Read the changed ACLs. If `again` is given, watches call it at the next change.

        In a new session all ACLs are read. `connected` is True when the session has just connected
        or reconnected, so that all earlier watches are gone.

        Raises:
            ConnectionLostError: the connection broke. The next call reads the same changes again.
        """
        async with self._lock:
            if connected:
                self._watched.clear()
            self._has_fired = False
            stored, last = None, dict(self._last)
            if session is not self._read_in:
                # Watches are set before the read, so that changes during the read are read again.
                for parent in last:
                    names = await self._names(session, parent, again)
                    last[parent] = _Seen(max(names, default=""), -1)
                stored = await read_acls(session.read)
            changed: dict[ResourcePattern, StoredRules] = {}
            for _ in range(_ROUNDS_MAX):
                as_of: int | None = session.last_zxid
                if (patterns := await self._new_patterns(session, again, last)) is None:
                    break
                rules, invalid = await read_some_acls(session.read, patterns)
                _log_invalid(invalid)
                changed |= rules
                if self._has_fired:
                    as_of = None  # The watcher calls `follow` again, because the watch has fired.
                    break
            else:
                as_of = None
            self._notify(stored, changed, as_of)
            self._last, self._read_in = last, session

    def _notify(
        self,
        stored: StoredAcls | None,
        changed: Mapping[ResourcePattern, StoredRules],
        as_of: int | None,
    ) -> None:
        if stored is not None:
            _log_invalid(stored.invalid)
            self._listener.acls_read(stored)
        for pattern, (entries, version) in changed.items():
            self._listener.acl_changed(pattern, entries, version)
        self._listener.acls_are_of(as_of)

    async def _new_patterns(
        self, session: ZooKeeperSession, again: Watch | None, last: dict[str, _Seen]
    ) -> list[ResourcePattern] | None:
        """Return the patterns of notifications after `last`, and advance `last`.

        If there is no new notification, return None. Notifications are kept for 15 minutes, so
        there may be many: they are listed only if the parent has changed, or to set a watch.
        """
        before, patterns = dict(last), dict[ResourcePattern, None]()
        for parent, znode in zip(last, await _data(session, list(last)), strict=True):
            pzxid = znode.stat.pzxid if znode is not None else -1
            is_watched = again is None or parent in self._watched
            if pzxid == last[parent].pzxid and is_watched:
                continue
            names = await self._names(session, parent, again)
            new = sorted(name for name in names if name > last[parent].name)
            last[parent] = _Seen(max(new, default=last[parent].name), pzxid)
            changes = await _data(session, [f"{parent}/{name}" for name in new])
            for name, znode in zip(new, changes, strict=True):
                try:
                    if znode is not None:  # None: it was purged after 15 minutes
                        patterns[AclChangeZnode.decode(parent, znode.data)] = None
                except ZnodeContentError as error:
                    _log.error("%s: %s", name, error)
        has_news = any(last[parent].name != before[parent].name for parent in last)
        return list(patterns) if has_news else None

    async def _names(
        self, session: ZooKeeperSession, parent: str, again: Watch | None
    ) -> list[str]:
        watch: Watch | None = None
        if again is not None and parent not in self._watched:
            self._watched.add(parent)

            def watch() -> None:
                self._watched.discard(parent)
                self._has_fired = True
                again()

        try:
            return await session.children(parent, watch)
        except NoSuchZnodeError:
            self._watched.discard(parent)
            _log.error("%s is missing: this broker misses ACL changes until it reconnects", parent)
            return []


async def _data(session: ZooKeeperSession, paths: Sequence[str]) -> list[ZnodeData | None]:
    return cast(list[ZnodeData | None], await session.read([ReadData(path) for path in paths]))


def _log_invalid(invalid: Sequence[str]) -> None:
    for text in invalid:
        _log.error("%s", text)
