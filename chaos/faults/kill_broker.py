"""SIGKILL ends the process of a broker that is not the controller."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from chaos.fault import Fault, Target


@asynccontextmanager
async def _inject(target: Target) -> AsyncIterator[None]:
    controller = await target.controller()
    broker = next(each for each in target.brokers if each != controller)
    await target.kill(broker)
    try:
        yield
    finally:
        await target.start(broker)


KILL_BROKER = Fault(
    name="kill_broker",
    does="SIGKILL ends the process of a broker that is not the controller.",
    inject=_inject,
)
