"""SIGSTOP pauses the active controller's process until SIGCONT."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from chaos.fault import Fault, Target


@asynccontextmanager
async def _inject(target: Target) -> AsyncIterator[None]:
    broker = await target.controller()
    await target.pause(broker)
    try:
        # The process is paused during the whole recorded interval.
        with target.recorded("freeze", broker):
            yield
    finally:
        await target.resume(broker)


PAUSE_CONTROLLER = Fault(
    name="pause_controller",
    does="SIGSTOP pauses the active controller's process until SIGCONT.",
    inject=_inject,
)
