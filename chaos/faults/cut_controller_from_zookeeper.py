"""Nothing passes between the controller's process and ZooKeeper."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from chaos.fault import Fault, Target


@asynccontextmanager
async def _inject(target: Target) -> AsyncIterator[None]:
    broker = await target.controller()
    with (
        target.recorded("disconnect", broker),
        target.network.cut_from_zookeeper(broker),
    ):
        yield


CUT_CONTROLLER_FROM_ZOOKEEPER = Fault(
    name="cut_controller_from_zookeeper",
    does="Nothing passes between the controller's process and ZooKeeper.",
    inject=_inject,
    breaks_links=True,
)
