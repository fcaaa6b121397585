"""Nothing passes on the gRPC channels between the controller and the other brokers."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from chaos.fault import Fault, Target


@asynccontextmanager
async def _inject(target: Target) -> AsyncIterator[None]:
    broker = await target.controller()
    with (
        target.recorded("cut_from_peers", broker),
        target.network.cut_from_peers(broker, requests=True, replies=True),
    ):
        yield


CUT_CONTROLLER_FROM_PEERS = Fault(
    name="cut_controller_from_peers",
    does="Nothing passes on the gRPC channels between the controller and the other brokers.",
    inject=_inject,
    breaks_links=True,
)
