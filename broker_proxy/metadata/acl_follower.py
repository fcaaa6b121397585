"""Keeps a broker's ACLs current: reads all ACLs in each new session, then those that change.

Two znodes have notifications of ACLs, and the follower reports the zxid of what it has read. So it
reads the notifications of both in rounds, instead of with a ChangeFollower. Only one read runs at a
time: an older read must not overwrite a newer one.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from functools import partial
from typing import Final, Protocol

from bridgehead.authorizer import ResourcePattern
from broker_proxy.metadata.change_follower import (
    Notifications,
    Seen,
    Watch,
    log_invalid,
    read_data,
)
from cluster_model.acls.bindings import Entries
from cluster_model.znodes.acls import AclChangeZnode
from zookeeper_client.acl_reading import StoredAcls, StoredRules, read_acls, read_some_acls
from zookeeper_client.session import ZooKeeperSession

# The ACLs are those at one zxid only if no notification arrives while they are read. The follower
# reads again until no notification arrives, but at most this many times.
_ROUNDS_MAX: Final = 10


class AclListener(Protocol):
    """Receives the ACLs. Called on the event loop; must not block."""

    def acls_read(self, stored: StoredAcls) -> None:
        """All ACLs were read."""

    def acl_changed(self, pattern: ResourcePattern, entries: Entries, version: int | None) -> None:
        """A pattern was read again. `version` is its znode's, or None if the znode was deleted."""

    def acls_are_of(self, zxid: int | None) -> None:
        """The ACLs are those at `zxid`; None: they were read at different zxids."""


class AclFollower:
    """Reads the ACLs. ZooKeeperWatcher calls it after each connect and when a watch fires."""

    def __init__(self, listener: AclListener) -> None:
        self._listener = listener
        self._notifications = {
            parent: Notifications(
                f"{parent}/{AclChangeZnode.word}",
                partial(AclChangeZnode.decode, parent),
                "this broker misses ACL changes until it exists again",
            )
            for parent in AclChangeZnode.parents
        }
        self._seen = dict.fromkeys(AclChangeZnode.parents, Seen())
        # The pzxid of each parent, read before its children were listed. If it has not changed
        # since, there is no new notification.
        self._pzxids: dict[str, int] = {}
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
            stored, changed = None, dict[ResourcePattern, StoredRules]()
            seen, pzxids = dict(self._seen), dict(self._pzxids)
            if session is not self._read_in:
                # Watches are set before the read, so that changes during the read are read again.
                for parent in seen:
                    names = await self._watching(session, parent, again)
                    seen[parent] = Seen(names or frozenset())
                pzxids.clear()
                stored = await read_acls(session.read)
            for _ in range(_ROUNDS_MAX):
                as_of: int | None = session.last_zxid
                patterns, is_empty, in_doubt = await self._news(session, again, seen, pzxids)
                if in_doubt:
                    stored, changed = await read_acls(session.read), {}
                elif is_empty:
                    break
                else:
                    rules, invalid = await read_some_acls(session.read, patterns)
                    log_invalid(invalid)
                    changed |= rules
                if self._has_fired:
                    as_of = None  # The watcher calls `follow` again, because the watch has fired.
                    break
            else:
                as_of = None
            self._notify(stored, changed, as_of)
            self._seen, self._pzxids, self._read_in = seen, pzxids, session

    def _notify(
        self,
        stored: StoredAcls | None,
        changed: Mapping[ResourcePattern, StoredRules],
        as_of: int | None,
    ) -> None:
        if stored is not None:
            log_invalid(stored.invalid)
            self._listener.acls_read(stored)
        for pattern, (entries, version) in changed.items():
            self._listener.acl_changed(pattern, entries, version)
        self._listener.acls_are_of(as_of)

    async def _news(
        self,
        session: ZooKeeperSession,
        again: Watch | None,
        seen: dict[str, Seen],
        pzxids: dict[str, int],
    ) -> tuple[list[ResourcePattern], bool, bool]:
        """Return the patterns of new notifications, and `is_empty` and `in_doubt` as in News.

        `seen` and `pzxids` are advanced. Notifications are kept for 15 minutes, so there may be
        many: they are listed only if the parent has changed, or to set a watch.
        """
        patterns, are_empty, in_doubt = dict[ResourcePattern, None](), True, False
        for parent, znode in zip(seen, await read_data(session, list(seen)), strict=True):
            pzxid = znode.stat.pzxid if znode is not None else -1
            is_watched = again is None or parent in self._watched
            if pzxid == pzxids.get(parent) and is_watched:
                continue
            watch = self._watch_of(parent, again)
            news = await self._notifications[parent].news(session, seen[parent], watch)
            seen[parent], pzxids[parent] = news.seen, pzxid
            patterns |= dict.fromkeys(news.keys)
            are_empty, in_doubt = are_empty and news.is_empty, in_doubt or news.in_doubt
        return list(patterns), are_empty, in_doubt

    async def _watching(
        self, session: ZooKeeperSession, parent: str, again: Watch | None
    ) -> frozenset[str] | None:
        return await self._notifications[parent].list(session, self._watch_of(parent, again))

    def _watch_of(self, parent: str, again: Watch | None) -> Watch | None:
        """Return the watch to set on a parent; None if it has one, or needs none."""
        if again is None or parent in self._watched:
            return None
        self._watched.add(parent)

        def watch() -> None:
            self._watched.discard(parent)
            self._has_fired = True
            again()

        return watch
