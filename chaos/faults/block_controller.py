"""The event loop of the active controller's process is blocked."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from chaos.failpoints import ENVELOPE_RECEIVED
from chaos.fault import Fault, Target


@asynccontextmanager
async def _inject(target: Target) -> AsyncIterator[None]:
    broker = await target.block_at(ENVELOPE_RECEIVED)
    try:
        with target.recorded("freeze", broker):
            yield
    finally:
        await target.unblock(broker)


BLOCK_CONTROLLER = Fault(
    name="block_controller",
    does="The event loop of the active controller's process is blocked.",
    inject=_inject,
    has_failpoint=True,
)
