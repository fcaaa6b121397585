"""A node starts although its connection to ZooKeeper breaks during the start."""

from __future__ import annotations

import asyncio
import gc
import multiprocessing
import pathlib
import time
from itertools import product

import pytest

from chaos.simulated.network import Direction, NetworkLoop
from chaos.simulated.nodes import SimulatedCluster
from chaos.simulated.virtual_time import virtual_host
from chaos.simulated.zookeeper_session import ZooKeeperService

MS = 0.001
SESSION_TIMEOUT_S = 2


async def start_with_an_outage(
    loop: NetworkLoop, folder: pathlib.Path, broker: int, after_ms: float, cut_s: float
) -> None:
    """Start broker 1 on an empty ZooKeeper, or broker 2 while broker 1 is the controller.

    The outage begins `after_ms` after the broker first connects to ZooKeeper. If `cut_s` is 0, it
    resets all of the broker's connections to ZooKeeper. Otherwise it cuts them for `cut_s`.
    """
    service = f"zookeeper of {broker}"
    cluster = SimulatedCluster(
        loop,
        ZooKeeperService(loop.network, lambda: time.time_ns() // 1_000_000, 1),
        data_dir=folder / "nodes",
        evidence_dir=folder / "run=1",
        brokers=2,
        properties={"zookeeper.session.timeout.ms": str(SESSION_TIMEOUT_S * 1000)},
        node_properties={},
        seeded_bugs=frozenset(),
    )
    if broker == 2:
        await cluster.nodes[1].start()
    starting = asyncio.create_task(cluster.nodes[broker].start())
    while not any(connection.service == service for connection in loop.network.connections):
        await asyncio.sleep(MS / 10)
    await asyncio.sleep(after_ms * MS)
    assert not starting.done(), "the outage comes too late"
    if cut_s:
        with loop.network.cut(Direction(service, True), Direction(service, False)):
            await asyncio.sleep(cut_s)
    else:
        loop.network.reset(service)
    async with asyncio.timeout(60):
        await starting
        if broker == 1:
            await cluster.nodes[2].start()
        while not cluster.is_complete():
            await asyncio.sleep(10 * MS)
    await cluster.stop()


def simulate(folder: pathlib.Path, broker: int, after_ms: float, cut_s: float) -> None:
    gc.disable()  # See chaos.simulated.run.
    loop = NetworkLoop(1)
    with virtual_host(loop, 1):
        loop.run_until_complete(start_with_an_outage(loop, folder, broker, after_ms, cut_s))


def starts(folder: pathlib.Path, broker: int, after_ms: float, *, cut_s: float) -> bool:
    """Simulate in another process. Returns False if the node did not start."""
    arguments = (folder, broker, after_ms, cut_s)
    process = multiprocessing.get_context("fork").Process(target=simulate, args=arguments)
    process.start()
    process.join()
    return process.exitcode == 0


@pytest.mark.parametrize("broker", [1, 2])
@pytest.mark.parametrize("after_ms", [0, 1, 2, 3, 4, 5, 6, 7, 8, 9])
def test_a_node_starts_although_its_connection_to_zookeeper_is_reset(
    broker: int, after_ms: int, tmp_path: pathlib.Path
) -> None:
    assert starts(tmp_path, broker, after_ms, cut_s=0)


# Broker 1 creates the paths of the cluster from the 37th to the 66th ms.
@pytest.mark.parametrize(
    ("broker", "after_ms"), [*product([1], [20, 36, 40, 50, 60]), *product([2], [8, 9, 10, 11])]
)
def test_a_node_starts_although_its_sessions_expire(
    broker: int, after_ms: int, tmp_path: pathlib.Path
) -> None:
    assert starts(tmp_path, broker, after_ms, cut_s=5 * SESSION_TIMEOUT_S)
