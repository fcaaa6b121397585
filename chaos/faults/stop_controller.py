"""SIGTERM stops the active controller's process, which then starts again."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from chaos.fault import Fault, Target


@asynccontextmanager
async def _inject(target: Target) -> AsyncIterator[None]:
    broker = await target.controller()
    await target.stop(broker)
    try:
        yield
    finally:
        await target.start(broker)


STOP_CONTROLLER = Fault(
    name="stop_controller",
    does="SIGTERM stops the active controller's process, which then starts again.",
    inject=_inject,
)
