"""Replies and metadata updates of the controller do not reach the other brokers."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from chaos.fault import Fault, Target


@asynccontextmanager
async def _inject(target: Target) -> AsyncIterator[None]:
    broker = await target.controller()
    with (
        target.recorded("cut_from_peers", broker),
        target.network.cut_from_peers(broker, requests=False, replies=True),
    ):
        yield


LOSE_REPLIES_OF_CONTROLLER = Fault(
    name="lose_replies_of_controller",
    does="Replies and metadata updates of the controller do not reach the other brokers; their "
    "requests still reach it.",
    inject=_inject,
    breaks_links=True,
)
