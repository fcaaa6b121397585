"""Wall clocks that jump, disks that are full or slow."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Final

from chaos.fault import Fault, Target

_HOUR_S = 3600


@asynccontextmanager
async def _move_clock_of_controller(target: Target) -> AsyncIterator[None]:
    broker = await target.controller()
    with target.recorded("move_clock", broker):
        await target.move_clock(broker, _HOUR_S)
        try:
            yield
        finally:
            await target.move_clock(broker, 0)


MOVE_CLOCK_OF_CONTROLLER = Fault(
    name="move_clock_of_controller",
    action="move_clock",
    does="The wall clock of the controller's process jumps an hour ahead, and back.",
    inject=_move_clock_of_controller,
    moves_clocks=True,
)


@asynccontextmanager
async def _fill_disk_of_controller(target: Target) -> AsyncIterator[None]:
    broker = await target.controller()
    with target.recorded("fill_disk", broker):
        await target.fill_disk(broker)
        try:
            yield
        finally:
            await target.free_disk(broker)


FILL_DISK_OF_CONTROLLER = Fault(
    name="fill_disk_of_controller",
    action="fill_disk",
    does="The controller cannot write to any file, as if its disks were full.",
    inject=_fill_disk_of_controller,
)


@asynccontextmanager
async def _fill_disk_of_zookeeper(target: Target) -> AsyncIterator[None]:
    member = await target.zookeeper.leader()
    await target.zookeeper.fill_disk(member)
    try:
        with target.recorded("fill_disk_of_zookeeper", f"zookeeper-{member}"):
            yield
    finally:
        await target.zookeeper.start(member)


FILL_DISK_OF_ZOOKEEPER = Fault(
    name="fill_disk_of_zookeeper",
    action="fill_disk_of_zookeeper",
    does="ZooKeeper's leader cannot write to any file, as if its disk were full, and exits.",
    inject=_fill_disk_of_zookeeper,
)


_DELAY_S = 0.3


@asynccontextmanager
async def _slow_fsync_of_zookeeper(target: Target) -> AsyncIterator[None]:
    member = await target.zookeeper.leader()
    async with target.zookeeper.slow_fsync(member, _DELAY_S):
        with target.recorded("slow_fsync", f"zookeeper-{member}"):
            yield


SLOW_FSYNC_OF_ZOOKEEPER = Fault(
    name="slow_fsync_of_zookeeper",
    action="slow_fsync",
    does="Each fsync of ZooKeeper's leader takes 300 ms longer.",
    inject=_slow_fsync_of_zookeeper,
)

FAULTS: Final[tuple[Fault, ...]] = (
    MOVE_CLOCK_OF_CONTROLLER,
    FILL_DISK_OF_CONTROLLER,
    FILL_DISK_OF_ZOOKEEPER,
    SLOW_FSYNC_OF_ZOOKEEPER,
)
