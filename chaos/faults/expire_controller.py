"""Another connection closes the controller's ZooKeeper session."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from chaos.fault import Fault, Target


@asynccontextmanager
async def _inject(target: Target) -> AsyncIterator[None]:
    await target.expire(await target.controller())
    yield


EXPIRE_CONTROLLER = Fault(
    name="expire_controller",
    does="Another connection closes the controller's ZooKeeper session.",
    inject=_inject,
)
