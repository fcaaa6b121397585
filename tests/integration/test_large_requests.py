"""The largest requests of every API delay other clients only for some milliseconds."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final

import psutil
import pytest

from bench.pauses import Request, largest_requests
from bridgehead.cluster import Cluster
from bridgehead.kafka_wire.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol
from bridgehead.kafka_wire.messages.metadata import MetadataRequest
from bridgehead.kafka_wire.primitives import ELEMENTS_MAX
from bridgehead.raw_client.asynchronous import AsyncConnection
from bridgehead.raw_client.codec import create_topics, encode_message
from cluster_model.acls.authorizer import CLASS_NAME

AUTHORIZER: Final = {"authorizer.class.name": CLASS_NAME, "super.users": "User:broker"}
# Otherwise Metadata creates ten thousand topics: a write, which takes as long as any other write.
NO_AUTHORIZER: Final = {"auto.create.topics.enable": "false"}
# Without slices, each of these requests stopped a broker for 2 to 15 seconds.
PAUSE_S_MAX: Final = 1.0
SLOWEST: Final = ("FindCoordinator coordinator_keys", "Metadata topics", "DeleteTopics topics")
MEMORY_BYTES_MAX: Final = 100 * 1024 * 1024
LOG_BYTES_PER_REQUEST_MAX: Final = 256 * 1024  # A request has megabytes.
LOG_BYTES_PER_SMALL_REQUEST_MAX: Final = 1024  # On a slow machine, more of them are sent meanwhile.


@pytest.fixture(params=["without rights", "no authorizer"])
def cluster(
    request: pytest.FixtureRequest, tmp_path: Path, new_chroot: Callable[[], str]
) -> Iterator[Cluster]:
    properties = AUTHORIZER if request.param == "without rights" else NO_AUTHORIZER
    with Cluster(
        brokers=1, data_dir=tmp_path / "c", zookeeper=new_chroot(), properties=properties
    ) as running:
        yield running


async def waits(address: str, large: asyncio.Task[bytes | None]) -> list[float]:
    """Return the times of another client's small requests, in seconds, until `large` is done."""
    times = []
    connection = await AsyncConnection.open(address)
    while not large.done():
        began = time.monotonic()
        await connection.call(3, 12, MetadataRequest(topics=[]))
        times.append(time.monotonic() - began)
        await asyncio.sleep(0.005)
    connection.close()
    return times


async def send(address: str, payload: bytes) -> bytes | None:
    connection = await AsyncConnection.open(address)
    connection.send(payload)
    response = await connection.receive_or_none()
    connection.close()
    return response


async def pauses(cluster: Cluster, requests: list[Request]) -> dict[str, list[float]]:
    address = cluster.bootstrap_server(1)
    await send(address, create_topics(["pauses"]))
    times = {}
    for request in requests:
        large = asyncio.create_task(send(address, request.payload()))
        times[request.name] = await waits(address, large)
        assert large.result() is not None, request.name
    return times


def logs_bytes(cluster: Cluster) -> int:
    folder = cluster.data_dir / "nodes" / "1"
    logs = [*(folder / "logs").iterdir(), folder / "node.log"]
    return sum(path.stat().st_size for path in logs if path.is_file())


@pytest.mark.timeout(900)
@pytest.mark.parametrize(
    "every", [False, pytest.param(True, marks=[pytest.mark.long, pytest.mark.soak])]
)
async def test_the_largest_requests_do_not_stop_other_clients(
    cluster: Cluster, every: bool
) -> None:
    requests = [
        request
        for request in largest_requests(ELEMENTS_MAX)
        if (every or request.name in SLOWEST or "records" in request.name) and not request.writes
    ]
    controller = cluster.controller_id()
    before = logs_bytes(cluster)
    times = await pauses(cluster, requests)
    assert {name: max(s) for name, s in times.items() if max(s) > PAUSE_S_MAX} == {}
    assert cluster.controller_id() == controller
    small = LOG_BYTES_PER_SMALL_REQUEST_MAX * sum(map(len, times.values()))
    assert logs_bytes(cluster) - before < LOG_BYTES_PER_REQUEST_MAX * len(requests) + small
    events = cluster.evidence_dir.rglob("*.jsonl")
    assert not any(b'"session_lost"' in path.read_bytes() for path in events)


async def one_more_element_closes_the_connection(address: str) -> None:
    request = next(r for r in largest_requests(ELEMENTS_MAX + 1) if r.name == SLOWEST[0])
    assert await send(address, request.payload()) is None


async def abuse(address: str, number: int) -> None:
    """Send what a broker might remember: sessions, member ids, names, records."""
    names = ("Fetch topics.partitions", "OffsetFetch groups", "LeaveGroup members")
    for request in largest_requests(ELEMENTS_MAX):
        if request.name in names or "records" in request.name:
            await send(address, request.payload())
    connection = await AsyncConnection.open(address)
    protocols = [JoinGroupRequestProtocol("range", b"")]
    for member in range(200):
        join = JoinGroupRequest(
            group_id=f"g{number}-{member}",
            session_timeout_ms=60_000,
            rebalance_timeout_ms=60_000,
            protocol_type="consumer",
            protocols=protocols,
        )
        await connection.exchange(encode_message(11, 9, join, client_id="c" * 10_000))
    connection.close()


@pytest.mark.timeout(900)
@pytest.mark.long
@pytest.mark.parametrize("rounds", [4, pytest.param(40, marks=pytest.mark.soak)])
async def test_memory_does_not_grow_with_the_number_of_large_requests(
    rounds: int, new_chroot: Callable[[], str]
) -> None:
    with Cluster(brokers=1, zookeeper=new_chroot()) as cluster:
        address = cluster.bootstrap_server(1)
        process = psutil.Process(cluster.brokers[1].pid)
        await send(address, create_topics(["pauses"]))
        for number in range(2):
            await abuse(address, -1 - number)
        before = process.memory_info().rss
        for number in range(rounds):
            await abuse(address, number)
        assert process.memory_info().rss - before < MEMORY_BYTES_MAX
        await one_more_element_closes_the_connection(address)
