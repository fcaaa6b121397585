"""Independent writes of one connection are executed at the same time and answered in order."""

from __future__ import annotations

import asyncio
from typing import Any, cast

import pytest

from bridgehead.kafka_wire.api_key import ApiKey
from bridgehead.kafka_wire.codec import decode_request, encode_request
from bridgehead.kafka_wire.framing import frame
from bridgehead.kafka_wire.headers import RequestHeader, encode_request_header
from bridgehead.kafka_wire.messages.create_topics import CreatableTopic, CreateTopicsRequest
from bridgehead.kafka_wire.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState
from bridgehead.kafka_wire.messages.incremental_alter_configs import (
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from broker_proxy.client_request import ClientConnectionInfo, ClientRequest
from broker_proxy.connections.connection import ClientConnection
from broker_proxy.connections.overlapping_writes import OverlappingWrites
from cluster_model.client import Client


class Writes:
    """A connection and its dispatcher. A request ends when the test calls `end`."""

    def __init__(self) -> None:
        self.executing: list[int] = []
        self.recorded: list[int] = []
        self.ends: dict[int, asyncio.Future[None]] = {}
        self.is_allowed = self.is_valid = True
        client = Client(host="10.0.0.1", listener_name="PLAINTEXT", security_protocol="PLAINTEXT")
        info = ClientConnectionInfo("1:1-2:2-0", client)
        self.connection = ClientConnection(info, request_prefix="1.a.0", frame_bytes_max=1 << 20)
        self.writes = OverlappingWrites(
            cast(Any, self), self.connection, lambda: self.is_valid, lambda: 0
        )

    # The dispatcher's part.

    def may_overlap(self, request: ClientRequest) -> bool:
        return self.is_allowed

    def decode(self, request: ClientRequest) -> Any:
        return decode_request(request.header.api_key, request.header.api_version, request.body)

    async def handle(
        self, request: ClientRequest, earlier: asyncio.Future[Any] | None = None
    ) -> bytes | None:
        number = request.header.correlation_id
        self.executing.append(number)
        await self.ends.setdefault(number, asyncio.get_running_loop().create_future())
        if earlier is not None:
            await asyncio.wait((earlier,))
        self.recorded.append(number)
        return b"%d" % number

    # The socket's part.

    def receive(self, number: int, key: ApiKey, version: int, message: Any) -> None:
        header = RequestHeader(key, version, number, "client")
        body = encode_request(key, version, message)
        self.connection.receive_data(frame(encode_request_header(header) + body))
        self.writes.start_more()

    def create(self, number: int, *names: str) -> None:
        topics = [CreatableTopic(name=name, num_partitions=1) for name in names]
        self.receive(number, ApiKey.CREATE_TOPICS, 7, CreateTopicsRequest(topics=topics))

    async def work(self) -> list[bytes | None]:
        """Handle all queued frames, as ClientSocket does."""
        responses = []
        while (data := self.connection.next_frame()) is not None:
            responses.append(await self.writes.handle(self.writes.open(data)))
        await self.writes.finish()
        return responses

    def end(self, *numbers: int) -> None:
        for number in numbers:
            self.ends[number].set_result(None)


async def turns() -> None:
    for _ in range(10):
        await asyncio.sleep(0)


async def two_overlapping_writes() -> tuple[Writes, asyncio.Task[list[bytes | None]]]:
    """Return a connection with two writes in progress. The second arrived after the first began."""
    broker = Writes()
    broker.create(1, "t1")
    work = asyncio.create_task(broker.work())
    await turns()
    broker.create(2, "t2")
    await turns()
    return broker, work


async def test_responses_keep_the_order_of_requests_that_end_in_another_order() -> None:
    broker = Writes()
    for number in (1, 2, 3):
        broker.create(number, f"t{number}")
    work = asyncio.create_task(broker.work())
    await turns()
    assert broker.executing == [1, 2, 3]
    broker.end(3, 2)
    await turns()
    assert broker.recorded == []
    broker.end(1)
    assert await work == [b"1", b"2", b"3"]
    assert broker.recorded == [1, 2, 3]


async def test_a_request_that_arrives_later_overlaps_as_well() -> None:
    broker, work = await two_overlapping_writes()
    assert broker.executing == [1, 2]
    broker.end(1, 2)
    assert await work == [b"1", b"2"]


async def _second(broker: Writes, kind: str) -> None:
    match kind:
        case "the same topic":
            broker.create(2, "t1")
        case "a topic whose name collides":
            broker.create(2, "a_b")
        case "another API":
            names = DeleteTopicsRequest(topics=[DeleteTopicState(name="x")])
            broker.receive(2, ApiKey.DELETE_TOPICS, 6, names)
        case "an expired session":
            broker.is_valid = False
            broker.create(2, "t2")


@pytest.mark.parametrize(
    "kind",
    ["the same topic", "a topic whose name collides", "another API", "an expired session"],
)
async def test_a_request_that_may_depend_on_an_earlier_one_waits_for_it(kind: str) -> None:
    broker = Writes()
    broker.create(1, "t1", "a.b")
    await _second(broker, kind)
    broker.create(3, "t3")
    work = asyncio.create_task(broker.work())
    await turns()
    assert broker.executing == [1]
    broker.end(1)
    await turns()
    assert broker.executing[:2] == [1, 2]
    for number in (2, 3):
        broker.ends.setdefault(number, asyncio.get_running_loop().create_future())
        broker.end(number)
    assert await work == [b"1", b"2", b"3"]


@pytest.mark.parametrize(
    ("key", "version", "message"),
    [
        pytest.param(
            ApiKey.DELETE_TOPICS,
            6,
            DeleteTopicsRequest(topics=[DeleteTopicState(name=None, topic_id=bytes(16))]),
            id="deletion by id",
        ),
        pytest.param(
            ApiKey.INCREMENTAL_ALTER_CONFIGS,
            1,
            IncrementalAlterConfigsRequest(
                resources=[AlterConfigsResource(resource_type=4, resource_name="1")]
            ),
            id="configs of a broker",
        ),
    ],
)
async def test_a_request_without_known_topics_overlaps_with_no_other(
    key: ApiKey, version: int, message: Any
) -> None:
    broker = Writes()
    for number in (1, 2):
        broker.receive(number, key, version, message)
    work = asyncio.create_task(broker.work())
    await turns()
    assert broker.executing == [1]
    broker.end(1)
    await turns()
    broker.end(2)
    assert await work == [b"1", b"2"]


async def test_writes_that_may_not_overlap_are_executed_one_after_another() -> None:
    """While a quota, a policy or a fault rule is set, no writes overlap: their order may matter."""
    broker = Writes()
    broker.is_allowed = False
    for number in (1, 2):
        broker.create(number, f"t{number}")
    work = asyncio.create_task(broker.work())
    await turns()
    assert broker.executing == [1]
    broker.end(1)
    await turns()
    broker.end(2)
    await work


async def test_writes_stop_overlapping_when_a_quota_is_set() -> None:
    """The client always sends its next request before it gets the previous response."""
    broker, work = await two_overlapping_writes()
    broker.is_allowed = False
    broker.create(3, "t3")
    await turns()
    assert broker.executing == [1, 2]
    broker.end(1, 2)
    await turns()
    assert broker.executing == [1, 2, 3]
    broker.end(3)
    assert await work == [b"1", b"2", b"3"]


async def test_a_closed_connection_waits_for_the_writes_it_started() -> None:
    """Each request that was recorded as received is also recorded as answered."""
    broker = Writes()
    for number in (1, 2):
        broker.create(number, f"t{number}")
    data = broker.connection.next_frame()
    assert data is not None
    first = asyncio.create_task(broker.writes.handle(broker.writes.open(data)))
    await turns()
    broker.connection.drop_frames()
    broker.end(1)
    await first
    finish = asyncio.create_task(broker.writes.finish())
    await turns()
    assert not finish.done()
    broker.end(2)
    await finish
    assert broker.recorded == [1, 2]
