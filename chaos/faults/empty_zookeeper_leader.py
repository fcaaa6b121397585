"""SIGKILL ends ZooKeeper's leader, which starts again without its data."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from chaos.fault import Fault, Target


@asynccontextmanager
async def _inject(target: Target) -> AsyncIterator[None]:
    leader = await target.zookeeper.leader()
    with target.recorded("kill_zookeeper_leader", f"zookeeper-{leader}"):
        await target.zookeeper.kill(leader)
        try:
            yield
        finally:
            await target.zookeeper.erase(leader)
            await target.zookeeper.start(leader)


EMPTY_ZOOKEEPER_LEADER = Fault(
    name="empty_zookeeper_leader",
    does="SIGKILL ends ZooKeeper's leader, which starts again without its data.",
    inject=_inject,
)
