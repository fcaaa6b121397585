"""Each fsync of ZooKeeper's leader takes 300 ms longer."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from chaos.fault import Fault, Target

_DELAY_S = 0.3


@asynccontextmanager
async def _inject(target: Target) -> AsyncIterator[None]:
    member = await target.zookeeper.leader()
    async with target.zookeeper.slow_fsync(member, _DELAY_S):
        with target.recorded("slow_fsync", f"zookeeper-{member}"):
            yield


SLOW_FSYNC_OF_ZOOKEEPER = Fault(
    name="slow_fsync_of_zookeeper",
    does="Each fsync of ZooKeeper's leader takes 300 ms longer.",
    inject=_inject,
)
