"""ZooKeeper's leader cannot write to any file, as if its disk were full, and exits."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from chaos.fault import Fault, Target


@asynccontextmanager
async def _inject(target: Target) -> AsyncIterator[None]:
    member = await target.zookeeper.leader()
    await target.zookeeper.fill_disk(member)
    try:
        with target.recorded("fill_disk_of_zookeeper", f"zookeeper-{member}"):
            yield
    finally:
        await target.zookeeper.start(member)


FILL_DISK_OF_ZOOKEEPER = Fault(
    name="fill_disk_of_zookeeper",
    does="ZooKeeper's leader cannot write to any file, as if its disk were full, and exits.",
    inject=_inject,
)
