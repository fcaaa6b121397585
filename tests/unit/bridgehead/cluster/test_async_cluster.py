"""The coroutines of a cluster do not stop the event loop."""

from __future__ import annotations

import asyncio
import threading
from typing import Any

import pytest

from bridgehead.cluster import AsyncCluster, Cluster, ClusterError


class SlowClient:
    """Its commands wait until the event loop has made some steps."""

    def __init__(self) -> None:
        self.loop_moved = threading.Event()

    def kill_controller(self) -> dict[str, Any]:
        assert self.loop_moved.wait(30), "the event loop stood still"
        return {"id": 7, "pid": 70}

    def move_controller(self, node_id: int) -> dict[str, Any]:
        raise ClusterError(f"Broker {node_id} is not running.")


@pytest.fixture
def client() -> SlowClient:
    return SlowClient()


@pytest.fixture
def cluster(client: SlowClient) -> AsyncCluster:
    cluster = Cluster(brokers=1)
    cluster._client = client  # type: ignore[assignment]
    return cluster.asynchronous


async def test_the_event_loop_runs_during_a_failover(
    cluster: AsyncCluster, client: SlowClient
) -> None:
    killing = asyncio.create_task(cluster.kill_controller())
    for _ in range(5):
        await asyncio.sleep(0)
    client.loop_moved.set()
    assert await killing == 7


async def test_arguments_and_errors_pass_through(cluster: AsyncCluster) -> None:
    with pytest.raises(ClusterError, match="Broker 7 is"):
        await cluster.move_controller(7)


def test_every_method_that_controls_a_cluster_has_a_coroutine() -> None:
    blocking = {
        name
        for name, value in vars(Cluster).items()
        if callable(value) and not name.startswith("_") and name not in ("start", "stop")
    }
    not_needed = {"bootstrap_server", "upgrade"}  # no waiting; prints its steps
    assert blocking - not_needed <= set(vars(AsyncCluster))
