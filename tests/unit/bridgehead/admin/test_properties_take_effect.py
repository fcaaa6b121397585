"""What each property of KIP-117 §Configuration does, with values that differ from the defaults."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Iterator
from typing import Any

import pytest

from bridgehead.admin import AsyncAdminClient
from bridgehead.admin.calls import cluster, topics
from bridgehead.admin.calls.topics import NewTopicWithReplication
from bridgehead.admin.driver import Driver
from bridgehead.kafka_wire.api_key import ApiKey
from bridgehead.kafka_wire.framing import FrameBuffer
from bridgehead.kafka_wire.headers import decode_request_header
from bridgehead.kafka_wire.messages.create_topics import CreatableTopicResult, CreateTopicsResponse
from bridgehead.kafka_wire.messages.describe_cluster import DescribeClusterResponse
from tests.unit.bridgehead.admin.world import World


def created(request: Any, version: int) -> CreateTopicsResponse:
    return CreateTopicsResponse(0, [CreatableTopicResult(topic.name) for topic in request.topics])


def create(world: World) -> None:
    """Create a topic, and forget what happened."""
    world.everywhere(ApiKey.CREATE_TOPICS, created)
    assert world.run(topics.create_topics([NewTopicWithReplication("a", 1, 1)])).is_success
    world.new_lines()


def test_the_client_connects_to_all_bootstrap_servers_in_turn() -> None:
    world = World({"bootstrap.servers": "broker-3:9092,broker-2:9092"})
    world.everywhere(ApiKey.DESCRIBE_CLUSTER, lambda *_: DescribeClusterResponse())
    world.brokers[3].is_up = False
    assert world.run(cluster.describe_cluster()).is_success
    assert [line.split(" ", 1)[1] for line in world.new_lines()[:2]] == [
        "3 is down",
        "2 connected",
    ]


def test_each_request_has_the_client_id() -> None:
    world = World({"client.id": "audit-7"})
    seen: set[str | None] = set()
    send = world._receive

    def receive(number: int, broker: Any, payload: bytes) -> None:
        header, _ = decode_request_header(payload, broker.dialect)
        seen.add(header.client_id)
        send(number, broker, payload)

    world._receive = receive  # type: ignore[method-assign]
    create(world)
    assert seen == {"audit-7"}


def test_metadata_is_fetched_again_after_its_maximum_age() -> None:
    world = World({"metadata.max.age.ms": 7_000})
    create(world)
    for now_ms, fetches in ((7_000, 0), (7_001, 1)):
        world.advance_to(now_ms)
        assert world.run(topics.create_topics([NewTopicWithReplication("b", 1, 1)])).is_success
        assert sum("Metadata" in line for line in world.new_lines()) == fetches


def test_a_host_is_tried_again_after_the_reconnect_backoff() -> None:
    """The wait doubles with each failure, up to reconnect.backoff.max.ms."""
    world = World({"reconnect.backoff.ms": 600, "reconnect.backoff.max.ms": 1_500})
    world.brokers[1].is_up = False
    number = world.start(cluster.describe_cluster(), timeout_ms=6_000)
    while number not in world.outcomes:
        world.advance_to(world.core.wakeup_ms() or 0)
    downs = [int(line.split()[0]) for line in world.new_lines() if "is down" in line]
    assert downs == [0, 600, 1_800, 3_300, 4_800]


def test_a_failed_request_is_sent_again_after_the_retry_backoff() -> None:
    world = World({"retry.backoff.ms": 450, "retries": 2})
    create(world)
    responses = iter([41, 41, 0])

    def moved(request: Any, version: int) -> CreateTopicsResponse:
        return CreateTopicsResponse(0, [CreatableTopicResult("a", error_code=next(responses))])

    world.everywhere(ApiKey.CREATE_TOPICS, moved)
    assert world.run(topics.create_topics([NewTopicWithReplication("a", 1, 1)])).is_success
    sent = [int(line.split()[0]) for line in world.new_lines() if "CreateTopics" in line]
    assert sent == [0, 450, 900]


def test_a_request_without_a_response_is_sent_again_after_the_request_timeout() -> None:
    world = World({"request.timeout.ms": 2_500, "retry.backoff.ms": 100, "retries": 1})
    create(world)
    timeouts: list[int] = []

    def silent(request: Any, version: int) -> None:
        timeouts.append(request.timeout_ms)

    world.everywhere(ApiKey.CREATE_TOPICS, silent)
    assert world.run(topics.create_topics([NewTopicWithReplication("a", 1, 1)])).is_failure
    sent = [int(line.split()[0]) for line in world.new_lines() if "CreateTopics" in line]
    assert sent == [0, 2_600]
    assert timeouts == [2_250, 2_250]  # a tenth less, so that the response comes in time


def test_idle_connections_are_closed_after_the_maximum() -> None:
    world = World({"connections.max.idle.ms": 8_000})
    create(world)
    assert world.core.wakeup_ms() == 8_000
    world.advance_to(7_999)
    assert world.open_connections() == [1]
    world.advance_to(8_000)
    assert world.open_connections() == []


@pytest.fixture
def server() -> Iterator[socket.socket]:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        yield listening


@pytest.mark.parametrize("size", [3_000, 50_000, -1])
def test_sockets_have_the_configured_buffers(server: socket.socket, size: int) -> None:
    """Linux doubles the value. -1 stands for the default of the operating system."""
    host, port = server.getsockname()
    texts = {
        "bootstrap.servers": f"{host}:{port}",
        "send.buffer.bytes": size,
        "receive.buffer.bytes": size if size < 0 else size + 1_000,
    }
    seen: list[tuple[int, int]] = []

    async def call() -> None:
        async with AsyncAdminClient(texts) as admin:
            call = asyncio.create_task(admin.with_timeout(5_000).describe_cluster())
            await asyncio.get_running_loop().run_in_executor(None, server.accept)
            driver: Driver = admin._driver
            while not driver._sockets:
                await asyncio.sleep(0.001)
            (transport,) = driver._sockets.values()
            connected = transport.get_extra_info("socket")
            options = (socket.SO_SNDBUF, socket.SO_RCVBUF)
            seen.append(tuple(connected.getsockopt(socket.SOL_SOCKET, o) for o in options))
            call.cancel()

    asyncio.run(call())
    if size == -1:
        with socket.socket() as plain:
            plain.connect((host, port))
            sent, received = (
                plain.getsockopt(socket.SOL_SOCKET, o) for o in (socket.SO_SNDBUF, socket.SO_RCVBUF)
            )
        assert seen == [(sent, received)]
    else:
        assert seen == [(max(2 * size, 4_608), 2 * (size + 1_000))]


@pytest.mark.parametrize(("protocol", "first"), [("PLAINTEXT", b"\0"), ("SSL", b"\x16")])
def test_the_security_protocol_determines_the_first_byte(
    server: socket.socket, protocol: str, first: bytes
) -> None:
    """A TLS connection begins with a handshake record, a plain one with the length of a frame."""
    host, port = server.getsockname()

    async def call() -> bytes:
        texts = {"bootstrap.servers": f"{host}:{port}", "security.protocol": protocol}
        async with AsyncAdminClient(texts) as admin:
            call = asyncio.create_task(admin.with_timeout(5_000).describe_cluster())
            loop = asyncio.get_running_loop()
            accepted, _ = await loop.run_in_executor(None, server.accept)
            with accepted:
                data = await loop.run_in_executor(None, accepted.recv, 4_096)
            call.cancel()
            return data

    data = asyncio.run(call())
    assert data[:1] == first
    if protocol == "PLAINTEXT":
        (payload,) = FrameBuffer().receive_data(data)
        header, _ = decode_request_header(payload)
        assert header.client_id == "bridgehead-admin"
