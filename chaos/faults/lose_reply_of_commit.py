"""ZooKeeper's reply to a write of the controller is lost, and the connection is closed."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from chaos.fault import Fault, Target


@asynccontextmanager
async def _inject(target: Target) -> AsyncIterator[None]:
    broker = await target.controller()
    with target.recorded("lose_commit", broker):
        await target.network.lose_commit(broker, reply=True)
        yield


LOSE_REPLY_OF_COMMIT = Fault(
    name="lose_reply_of_commit",
    does="ZooKeeper's reply to a write of the controller is lost, and the connection is closed.",
    inject=_inject,
    breaks_links=True,
)
