"""`AsyncCluster`: the methods of a running `Cluster` as coroutines, for tests with asyncio.

A blocking method stops the event loop, and with it the client under test. Here it runs in a thread.

    cluster = bridgehead_cluster.asynchronous
    killed = await cluster.kill_controller()
    await cluster.wait_for_controller(other_than=killed)
"""

from __future__ import annotations

import asyncio
import functools
from collections.abc import Callable, Coroutine
from typing import Any, Concatenate, ParamSpec, TypeVar

from bridgehead.cluster.cluster import Broker, Cluster
from bridgehead.cluster.errors import HIDE_FROM_PYTEST

__tracebackhide__ = HIDE_FROM_PYTEST

P = ParamSpec("P")
T = TypeVar("T")


def _coroutine(
    method: Callable[Concatenate[Cluster, P], T],
) -> Callable[Concatenate[AsyncCluster, P], Coroutine[Any, Any, T]]:
    """Turn a method of `Cluster` into a coroutine method."""

    @functools.wraps(method)
    async def call(self: AsyncCluster, /, *args: P.args, **kwargs: P.kwargs) -> T:
        return await asyncio.to_thread(method, self.cluster, *args, **kwargs)

    return call


class AsyncCluster:
    """A running cluster: `Cluster.asynchronous`. The methods do what those of `Cluster` do."""

    def __init__(self, cluster: Cluster) -> None:
        self.cluster = cluster

    @property
    def bootstrap_servers(self) -> str:
        """`host:port,...`: the first listener of every broker."""
        return self.cluster.bootstrap_servers

    async def brokers(self) -> dict[int, Broker]:
        """Return every broker by its id, with its current pid."""
        return await asyncio.to_thread(lambda: self.cluster.brokers)

    status = _coroutine(Cluster.status)
    controller_id = _coroutine(Cluster.controller_id)
    wait_for_controller = _coroutine(Cluster.wait_for_controller)
    kill_controller = _coroutine(Cluster.kill_controller)
    freeze_controller = _coroutine(Cluster.freeze_controller)
    expire_controller = _coroutine(Cluster.expire_controller)
    move_controller = _coroutine(Cluster.move_controller)
    start_node = _coroutine(Cluster.start_node)
    stop_node = _coroutine(Cluster.stop_node)
    kill_node = _coroutine(Cluster.kill_node)
    heal = _coroutine(Cluster.heal)
