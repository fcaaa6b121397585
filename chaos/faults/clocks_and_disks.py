"""Faults of wall clocks and of disks."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Final

from chaos.fault import Fault, Record, Target, TargetWithDisks, TargetWithEnsemble

_HOUR_S: Final = 3600
_FSYNC_DELAY_S: Final = 0.3


@asynccontextmanager
async def _move_clock_of_controller(target: Target, record: Record) -> AsyncIterator[None]:
    broker = await target.controller()
    with record(broker):
        await target.move_clock(broker, _HOUR_S)
        try:
            yield
        finally:
            await target.move_clock(broker, 0)


@asynccontextmanager
async def _fill_disk_of_controller(target: TargetWithDisks, record: Record) -> AsyncIterator[None]:
    broker = await target.controller()
    with record(broker):
        await target.disks.fill(broker)
        try:
            yield
        finally:
            await target.disks.free(broker)


@asynccontextmanager
async def _fill_disk_of_zookeeper(
    target: TargetWithEnsemble, record: Record
) -> AsyncIterator[None]:
    member = await target.zookeeper.leader()
    await target.zookeeper.fill_disk(member)
    try:
        with record(f"zookeeper-{member}"):
            yield
    finally:
        await target.zookeeper.start(member)


@asynccontextmanager
async def _slow_fsync_of_zookeeper(
    target: TargetWithEnsemble, record: Record
) -> AsyncIterator[None]:
    member = await target.zookeeper.leader()
    async with target.zookeeper.slow_fsync(member, _FSYNC_DELAY_S):
        with record(f"zookeeper-{member}"):
            yield


MOVE_CLOCK_OF_CONTROLLER = Fault(
    name="move_clock_of_controller",
    does="The wall clock of the controller's process jumps an hour ahead, and back.",
    action="move_clock",
    effect="clock_moved",
    inject=_move_clock_of_controller,
    moves_clocks=True,
)
FILL_DISK_OF_CONTROLLER = Fault(
    name="fill_disk_of_controller",
    does="The controller cannot write to any file, as if its disks were full.",
    action="fill_disk",
    effect="controller_resigned_meanwhile",
    inject=_fill_disk_of_controller,
    needs=TargetWithDisks,
)
FILL_DISK_OF_ZOOKEEPER = Fault(
    name="fill_disk_of_zookeeper",
    does="ZooKeeper's leader cannot write to any file, as if its disk were full, and exits.",
    action="fill_disk_of_zookeeper",
    effect="nothing_was_committed",
    inject=_fill_disk_of_zookeeper,
    needs=TargetWithEnsemble,
)
SLOW_FSYNC_OF_ZOOKEEPER = Fault(
    name="slow_fsync_of_zookeeper",
    does="Each fsync of ZooKeeper's leader takes 300 ms longer.",
    action="slow_fsync",
    effect="commits_were_slow",
    inject=_slow_fsync_of_zookeeper,
    needs=TargetWithEnsemble,
)

FAULTS: Final[tuple[Fault, ...]] = (
    MOVE_CLOCK_OF_CONTROLLER,
    FILL_DISK_OF_CONTROLLER,
    FILL_DISK_OF_ZOOKEEPER,
    SLOW_FSYNC_OF_ZOOKEEPER,
)
