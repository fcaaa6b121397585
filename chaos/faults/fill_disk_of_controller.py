"""The controller cannot write to any file, as if its disks were full."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from chaos.fault import Fault, Target


@asynccontextmanager
async def _inject(target: Target) -> AsyncIterator[None]:
    broker = await target.controller()
    with target.recorded("fill_disk", broker):
        await target.fill_disk(broker)
        try:
            yield
        finally:
            await target.free_disk(broker)


FILL_DISK_OF_CONTROLLER = Fault(
    name="fill_disk_of_controller",
    does="The controller cannot write to any file, as if its disks were full.",
    inject=_inject,
)
