"""A write of the controller to ZooKeeper is lost, with its connection."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from chaos.fault import Fault, Target


@asynccontextmanager
async def _inject(target: Target) -> AsyncIterator[None]:
    broker = await target.controller()
    with target.recorded("lose_commit", broker):
        await target.network.lose_commit(broker, reply=False)
        yield


LOSE_REQUEST_OF_COMMIT = Fault(
    name="lose_request_of_commit",
    does="A write of the controller to ZooKeeper is lost, with its connection.",
    inject=_inject,
    breaks_links=True,
)
