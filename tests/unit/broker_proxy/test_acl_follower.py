"""The ACL follower reads every changed pattern, with one watch per parent of notifications."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Any, cast

from immutables import Map

from bridgehead.authorizer import AccessControlEntry, ResourcePattern
from broker_proxy.metadata.acl_follower import AclFollower
from broker_proxy.metadata.learned_acls import LearnedAcls
from cluster_model.acls.bindings import AclSet, Entries
from cluster_model.znodes.acls import AclChangeZnode, AclZnode
from zookeeper_client.acl_reading import StoredAcls
from zookeeper_client.session import ZooKeeperSession
from zookeeper_client.wire import Read, ReadChildren, Stat, ZnodeData

RULE = AccessControlEntry("User:alice", "*", "READ", "ALLOW")
STAT = Stat(*[0] * 11)


class FakeSession:
    """Znodes in memory. A watch on a znode fires once, when the znode gets its next child."""

    def __init__(self) -> None:
        self.znodes: dict[str, bytes] = {}
        self.watches: dict[str, list[Callable[[], None]]] = {}
        self.pzxids: dict[str, int] = {}
        self.listed = 0
        self._count = 0
        # Another client writes one of these patterns during each of the next reads.
        self.concurrent_writes: list[ResourcePattern] = []

    async def children(self, path: str, watch: Callable[[], None] | None = None) -> list[str]:
        self.listed += 1
        if watch is not None:
            self.watches.setdefault(path, []).append(watch)
        return self._below(path)

    async def read(self, reads: Sequence[Read]) -> list[Any]:
        await asyncio.sleep(0)
        results = [self._found(read) for read in reads]
        if self.concurrent_writes:
            self.write(self.concurrent_writes.pop(), RULE)
        return results

    @property
    def last_zxid(self) -> int:
        return self._count

    def _below(self, path: str) -> list[str]:
        return [znode[len(path) + 1 :] for znode in self.znodes if znode.rpartition("/")[0] == path]

    def _found(self, requested: Read) -> Any:
        if isinstance(requested, ReadChildren):
            return self._below(requested.path)
        if requested.path in AclChangeZnode.parents:
            return ZnodeData(None, STAT._replace(pzxid=self.pzxids.get(requested.path, 0)).pack())
        data = self.znodes.get(requested.path)
        return None if data is None else ZnodeData(data, STAT.pack())

    def write(self, pattern: ResourcePattern, *rules: AccessControlEntry) -> None:
        if rules:
            self.znodes[AclZnode.path(pattern)] = AclZnode.encode(rules)
        else:
            del self.znodes[AclZnode.path(pattern)]
        prefix = AclChangeZnode.prefix(pattern)
        self.znodes[f"{prefix}{self._count:010}"] = AclChangeZnode.encode(pattern)
        self._count += 1
        parent = prefix.rpartition("/")[0]
        self.pzxids[parent] = self._count
        for watch in self.watches.pop(parent, []):
            watch()


async def settled() -> None:
    for _ in range(50):
        await asyncio.sleep(0)


async def test_acl_follower_keeps_one_watch_per_parent_and_misses_nothing() -> None:
    fake, learned = FakeSession(), LearnedAcls(lambda *_seen: None)
    follower, session = AclFollower(learned), cast(ZooKeeperSession, fake)
    tasks: set[asyncio.Task[None]] = set()

    def again() -> None:
        tasks.add(asyncio.ensure_future(follower.follow(session, again)))

    patterns = [
        ResourcePattern("TOPIC", "PREFIXED" if number % 3 else "LITERAL", f"t{number}")
        for number in range(20)
    ]
    fake.write(patterns[0], RULE)
    await follower.follow(session, again, connected=True)
    for pattern in patterns:
        fake.write(pattern, RULE)
        await settled()
        assert learned.acls.entries(pattern) == (RULE,)
        assert {path: len(watch) for path, watch in fake.watches.items()} == {
            AclChangeZnode.literal: 1,
            AclChangeZnode.extended: 1,
        }
    fake.write(patterns[0])
    await settled()
    assert learned.acls.entries(patterns[0]) == ()
    assert len(tasks) == 21  # one read for each change
    await follower.follow(session, again, connected=True)  # New watches: the old ones may be lost.
    assert {len(watch) for watch in fake.watches.values()} == {2}


def test_acls_that_were_deleted_between_two_sessions_are_reported() -> None:
    """If they were not reported, the controller in this process would keep using them."""
    gone, kept = (ResourcePattern("TOPIC", "LITERAL", name) for name in ("gone", "kept"))
    seen: list[tuple[ResourcePattern, Entries, int | None]] = []
    learned = LearnedAcls(lambda *arguments: seen.append(arguments))
    both = AclSet.of({gone: (RULE,), kept: (RULE,)})
    learned.acls_read(StoredAcls(both, Map({gone: 0, kept: 3}), ()))
    seen.clear()
    learned.acls_read(StoredAcls(both.with_entries(gone, ()), Map({kept: 3}), ()))
    assert seen == [(gone, (), None), (kept, (RULE,), 3)]


class RecordedAcls(LearnedAcls):
    """Records the zxids that the follower reports for the ACLs."""

    def __init__(self) -> None:
        super().__init__(lambda *_seen: None)
        self.zxids: list[int | None] = []

    def acls_are_of(self, zxid: int | None) -> None:
        super().acls_are_of(zxid)
        self.zxids.append(zxid)


async def test_acl_follower_reports_a_zxid_only_after_it_has_read_concurrent_changes() -> None:
    fake, learned = FakeSession(), RecordedAcls()
    follower, session = AclFollower(learned), cast(ZooKeeperSession, fake)
    patterns = [ResourcePattern("TOPIC", "LITERAL", f"t{number}") for number in range(4)]
    fake.write(patterns[0], RULE)
    fake.concurrent_writes = patterns[1:3]
    await follower.follow(session, None, connected=True)
    assert all(learned.acls.entries(pattern) == (RULE,) for pattern in patterns[:3])
    await follower.follow(session, None)
    fake.write(patterns[3], RULE)
    await follower.follow(session, None)
    assert learned.zxids == [3, 3, 4]
    assert learned.acls.entries(patterns[3]) == (RULE,)


async def test_acl_follower_applies_acls_but_reports_no_zxid_when_writes_never_stop() -> None:
    fake, learned = FakeSession(), RecordedAcls()
    follower, session = AclFollower(learned), cast(ZooKeeperSession, fake)
    patterns = [ResourcePattern("TOPIC", "LITERAL", f"t{number}") for number in range(60)]
    fake.write(patterns[0], RULE)
    fake.concurrent_writes = patterns[1:]
    await follower.follow(session, None, connected=True)
    assert learned.zxids == [None]
    assert learned.acls.entries(patterns[0]) == (RULE,)


async def test_notifications_are_listed_once_for_a_change_and_never_without_a_change() -> None:
    fake, learned = FakeSession(), RecordedAcls()
    follower, session = AclFollower(learned), cast(ZooKeeperSession, fake)

    def again() -> None:
        pass

    fake.write(ResourcePattern("TOPIC", "LITERAL", "a"), RULE)
    await follower.follow(session, again, connected=True)
    fake.listed = 0
    fake.write(ResourcePattern("TOPIC", "LITERAL", "b"), RULE)
    await follower.follow(session, again)
    assert fake.listed == 1
    assert len(learned.acls) == 2
    await follower.follow(session, again)
    await follower.follow(session, None)
    assert fake.listed == 1
    assert learned.zxids == [1, 2, 2, 2]


async def test_a_follower_that_will_be_called_again_reads_no_further_notifications() -> None:
    fake, learned = FakeSession(), RecordedAcls()
    follower, session = AclFollower(learned), cast(ZooKeeperSession, fake)
    patterns = [ResourcePattern("TOPIC", "LITERAL", f"t{number}") for number in range(3)]
    await follower.follow(session, lambda: None, connected=True)
    fake.write(patterns[0], RULE)
    fake.concurrent_writes = patterns[1:]
    fake.listed = 0
    await follower.follow(session, lambda: None)
    assert (fake.listed, learned.zxids[-1]) == (1, None)
    await follower.follow(session, lambda: None)
    assert len(learned.acls) == 3
    assert learned.zxids[-1] == 3
