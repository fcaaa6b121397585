"""The connections of the other brokers to the controller are reset."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from chaos.fault import Fault, Target


@asynccontextmanager
async def _inject(target: Target) -> AsyncIterator[None]:
    broker = await target.controller()
    with target.recorded("cut_from_peers", broker):
        await target.network.reset_peers(broker)
        yield


RESET_PEERS_OF_CONTROLLER = Fault(
    name="reset_peers_of_controller",
    does="The connections of the other brokers to the controller are reset.",
    inject=_inject,
    breaks_links=True,
)
