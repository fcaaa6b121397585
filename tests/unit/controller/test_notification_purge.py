"""Change notifications are purged after fifteen minutes."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Any, cast

from cluster_model.znodes.acls import AclChangeZnode
from cluster_model.znodes.operations import Delete
from controller.store.port import ContentConflictError
from controller.term.deletions import Deletions
from controller.term.notifications import EXPIRE_AFTER_MS, expired, purge_notifications
from zookeeper_client.wire import Read, ReadChildren, ReadResult, Stat, ZnodeData

NOT_EMPTY = -111
PARENT = AclChangeZnode.parents[0]


def znode(created_ms: int) -> ZnodeData:
    return ZnodeData(b"{}", Stat(1, 1, created_ms, created_ms, 0, 0, 0, 0, 2, 0, 1).pack())


def test_notifications_expire_after_fifteen_minutes() -> None:
    now = 10 * EXPIRE_AFTER_MS
    znodes = {
        "/config/changes/config_change_0000000001": znode(now - EXPIRE_AFTER_MS - 1),
        "/config/changes/config_change_0000000002": znode(now - EXPIRE_AFTER_MS),
        "/config/changes/config_change_0000000003": None,
    }
    assert expired(znodes, now) == ["/config/changes/config_change_0000000001"]


class Purged:
    """The loop and the reads of a controller, over the names of one folder."""

    def __init__(self, count: int, expired_count: int) -> None:
        self.now_ms = 10 * EXPIRE_AFTER_MS
        old, new = self.now_ms - EXPIRE_AFTER_MS - 1, self.now_ms
        self.created = {f"acl_changes_{n:010}": old if n < expired_count else new
                        for n in range(count)}  # fmt: skip
        self.actions: list[Callable[[], Awaitable[None]]] = []
        self.multis: list[int] = []
        self.with_children: set[str] = set()
        self._deletions = Deletions()

    async def purge(self) -> None:
        await purge_notifications(self.read, cast(Any, self), self.now_ms, self._deletions)
        while self.actions:
            await self.actions.pop()()

    async def read(self, reads: Sequence[Read]) -> list[ReadResult]:
        results: list[ReadResult] = []
        for read in reads:
            parent, _, name = read.path.rpartition("/")
            if isinstance(read, ReadChildren):
                results.append(list(self.created) if read.path == PARENT else [])
            else:
                assert parent == PARENT
                results.append(znode(self.created[name]))
        return results

    async def commit_operations(self, operations: Sequence[Delete]) -> None:
        for index, operation in enumerate(operations):
            if operation.path.rpartition("/")[2] in self.with_children:
                raise ContentConflictError(index, NOT_EMPTY)
        self.multis.append(len(operations))
        for operation in operations:
            del self.created[operation.path.rpartition("/")[2]]

    def schedule(self, action: Callable[[], Awaitable[None]]) -> None:
        self.actions.append(action)


async def test_all_expired_notifications_are_purged_in_several_actions() -> None:
    """If a purge made only one multi, a busy cluster would keep more notifications every minute."""
    world = Purged(2_000, expired_count=1_200)
    await world.purge()
    assert world.multis == [480, 480, 240]
    assert len(world.created) == 800


async def test_znodes_of_others_do_not_keep_notifications_from_being_purged() -> None:
    """Their names sort before and after ours. Only the notifications are deleted."""
    world = Purged(3, expired_count=3)
    foreign = dict.fromkeys(("a", "acl_changes_x", "z"), world.created["acl_changes_0000000001"])
    world.created |= foreign
    world.created |= {f"a{number}": world.now_ms for number in range(500)}
    await world.purge()
    assert world.multis == [3]
    assert foreign.keys() <= world.created.keys()


async def test_a_notification_that_cannot_be_deleted_ends_no_term_and_stops_no_purge() -> None:
    """Somebody has given it a child. Its multi fails, so the next purge leaves it out."""
    world = Purged(5, expired_count=5)
    world.with_children = {"acl_changes_0000000002"}
    for _ in range(2):
        await world.purge()
    assert set(world.created) == world.with_children
