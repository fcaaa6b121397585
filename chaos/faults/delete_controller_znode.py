"""An operator deletes the znode /controller."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from chaos.fault import Fault, Target


@asynccontextmanager
async def _inject(target: Target) -> AsyncIterator[None]:
    broker = await target.controller()
    with target.recorded("delete_controller_znode", broker):
        await target.delete_znode("/controller")
        yield


DELETE_CONTROLLER_ZNODE = Fault(
    name="delete_controller_znode",
    does="An operator deletes the znode /controller.",
    inject=_inject,
)
