"""SIGSTOP pauses ZooKeeper's leader until SIGCONT."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from chaos.fault import Fault, Target


@asynccontextmanager
async def _inject(target: Target) -> AsyncIterator[None]:
    leader = await target.zookeeper.leader()
    await target.zookeeper.pause(leader)
    try:
        with target.recorded("freeze_zookeeper_leader", f"zookeeper-{leader}"):
            yield
    finally:
        await target.zookeeper.resume(leader)


PAUSE_ZOOKEEPER_LEADER = Fault(
    name="pause_zookeeper_leader",
    does="SIGSTOP pauses ZooKeeper's leader until SIGCONT.",
    inject=_inject,
)
