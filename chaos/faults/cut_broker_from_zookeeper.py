"""Nothing passes between ZooKeeper and a broker that is not the controller."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from chaos.fault import Fault, Target


@asynccontextmanager
async def _inject(target: Target) -> AsyncIterator[None]:
    controller = await target.controller()
    broker = next(each for each in target.brokers if each != controller)
    with target.recorded("disconnect", broker), target.network.cut_from_zookeeper(broker):
        yield


CUT_BROKER_FROM_ZOOKEEPER = Fault(
    name="cut_broker_from_zookeeper",
    does="Nothing passes between ZooKeeper and a broker that is not the controller.",
    inject=_inject,
    breaks_links=True,
)
