"""SIGKILL ends ZooKeeper's leader, which then starts again."""

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
            await target.zookeeper.start(leader)


KILL_ZOOKEEPER_LEADER = Fault(
    name="kill_zookeeper_leader",
    does="SIGKILL ends ZooKeeper's leader, which then starts again.",
    inject=_inject,
)
