"""Messages from other brokers to the controller arrive at least 300 ms late."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from chaos.fault import Fault, Target

_DELAY_S = 0.3


@asynccontextmanager
async def _inject(target: Target) -> AsyncIterator[None]:
    broker = await target.controller()
    with target.recorded("slow_peers", broker), target.network.slow_peers(broker, _DELAY_S):
        yield


SLOW_PEERS_OF_CONTROLLER = Fault(
    name="slow_peers_of_controller",
    does="Messages from other brokers to the controller arrive at least 300 ms late.",
    inject=_inject,
    breaks_links=True,
)
