"""SIGSTOP pauses so many members of ZooKeeper that no quorum is left."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from chaos.fault import Fault, Target


@asynccontextmanager
async def _inject(target: Target) -> AsyncIterator[None]:
    members = target.zookeeper.members
    paused = members[len(members) // 2 :]
    for member in paused:
        await target.zookeeper.pause(member)
    try:
        with target.recorded("freeze_zookeeper", f"zookeeper-{paused[0]}"):
            yield
    finally:
        for member in paused:
            await target.zookeeper.resume(member)


PAUSE_QUORUM = Fault(
    name="pause_quorum",
    does="SIGSTOP pauses so many members of ZooKeeper that no quorum is left.",
    inject=_inject,
)
