"""Nothing passes on the gRPC channels from the other brokers to the controller."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from chaos.fault import Fault, Target


@asynccontextmanager
async def _inject(target: Target) -> AsyncIterator[None]:
    broker = await target.controller()
    with (
        target.recorded("cut_from_peers", broker),
        target.network.cut_from_peers(broker, requests=True, replies=False),
    ):
        yield


LOSE_REQUESTS_TO_CONTROLLER = Fault(
    name="lose_requests_to_controller",
    does="Nothing passes on the gRPC channels from the other brokers to the controller.",
    inject=_inject,
    breaks_links=True,
)
