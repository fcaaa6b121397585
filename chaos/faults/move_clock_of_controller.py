"""The wall clock of the controller's process jumps an hour ahead, and back."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from chaos.fault import Fault, Target

_HOUR_S = 3600


@asynccontextmanager
async def _inject(target: Target) -> AsyncIterator[None]:
    broker = await target.controller()
    with target.recorded("move_clock", broker):
        await target.move_clock(broker, _HOUR_S)
        try:
            yield
        finally:
            await target.move_clock(broker, 0)


MOVE_CLOCK_OF_CONTROLLER = Fault(
    name="move_clock_of_controller",
    does="The wall clock of the controller's process jumps an hour ahead, and back.",
    inject=_inject,
    moves_clocks=True,
)
