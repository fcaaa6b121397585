"""Faults of wall clocks and of disks."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Final

from chaos.fault import Fault, Target

_HOUR_S: Final = 3600
_FSYNC_DELAY_S: Final = 0.3


@asynccontextmanager
async def _move_clock_of_controller(target: Target) -> AsyncIterator[None]:
    broker = await target.controller()
    with target.recorded("move_clock", broker):
        await target.move_clock(broker, _HOUR_S)
        try:
            yield
        finally:
            await target.move_clock(broker, 0)


@asynccontextmanager
async def _fill_disk_of_controller(target: Target) -> AsyncIterator[None]:
    broker = await target.controller()
    with target.recorded("fill_disk", broker):
        await target.fill_disk(broker)
        try:
            yield
        finally:
            await target.free_disk(broker)


@asynccontextmanager
async def _fill_disk_of_zookeeper(target: Target) -> AsyncIterator[None]:
    member = await target.zookeeper.leader()
    await target.zookeeper.fill_disk(member)
    try:
        with target.recorded("fill_disk_of_zookeeper", f"zookeeper-{member}"):
            yield
    finally:
        await target.zookeeper.start(member)


@asynccontextmanager
async def _slow_fsync_of_zookeeper(target: Target) -> AsyncIterator[None]:
    member = await target.zookeeper.leader()
    async with target.zookeeper.slow_fsync(member, _FSYNC_DELAY_S):
        with target.recorded("slow_fsync", f"zookeeper-{member}"):
            yield


MOVE_CLOCK_OF_CONTROLLER = Fault(
    name="move_clock_of_controller",
    does="The wall clock of the controller's process jumps an hour ahead, and back.",
    inject=_move_clock_of_controller,
    moves_clocks=True,
)
FILL_DISK_OF_CONTROLLER = Fault(
    name="fill_disk_of_controller",
    does="The controller cannot write to any file, as if its disks were full.",
    inject=_fill_disk_of_controller,
)
FILL_DISK_OF_ZOOKEEPER = Fault(
    name="fill_disk_of_zookeeper",
    does="ZooKeeper's leader cannot write to any file, as if its disk were full, and exits.",
    inject=_fill_disk_of_zookeeper,
)
SLOW_FSYNC_OF_ZOOKEEPER = Fault(
    name="slow_fsync_of_zookeeper",
    does="Each fsync of ZooKeeper's leader takes 300 ms longer.",
    inject=_slow_fsync_of_zookeeper,
)

FAULTS: Final[tuple[Fault, ...]] = (
    MOVE_CLOCK_OF_CONTROLLER,
    FILL_DISK_OF_CONTROLLER,
    FILL_DISK_OF_ZOOKEEPER,
    SLOW_FSYNC_OF_ZOOKEEPER,
)
