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
        with target.recorded("freeze", broker):  # The process is paused all the time.
            yield
    finally:
        await target.resume(broker)


PAUSE_CONTROLLER = Fault(
    name="pause_controller",
    does="SIGSTOP pauses the active controller's process until SIGCONT.",
    inject=_inject,
)
