"""Change notifications are purged after fifteen minutes."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Any, cast

from cluster_model.znodes.acls import AclChangeZnode
from cluster_model.znodes.operations import Delete
from controller.term.notifications import EXPIRE_AFTER_MS, expired, purge_notifications
from zookeeper_client.wire import Read, ReadChildren, ReadResult, Stat, ZnodeData

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
        self.multis.append(len(operations))
        for operation in operations:
            del self.created[operation.path.rpartition("/")[2]]

    def schedule(self, action: Callable[[], Awaitable[None]]) -> None:
        self.actions.append(action)


async def test_all_expired_notifications_are_purged_in_several_actions() -> None:
    """If a purge made only one multi, a busy cluster would keep more notifications every minute."""
    world = Purged(2_000, expired_count=1_200)
    await purge_notifications(world.read, cast(Any, world), world.now_ms)
    while world.actions:
        await world.actions.pop()()
    assert world.multis == [480, 480, 240]
    assert len(world.created) == 800
