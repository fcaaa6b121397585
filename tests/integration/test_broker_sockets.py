"""Over real sockets, listeners keep requests in order, forward them and reject bad frames."""

from __future__ import annotations

import asyncio
import gzip
import json
import os
import select
import socket
from pathlib import Path
from typing import Any, cast

import pytest

from bridgehead.kafka_wire.api_key import ApiKey
from bridgehead.kafka_wire.codec import decode_response
from bridgehead.kafka_wire.headers import (
    decode_response_header,
)
from bridgehead.kafka_wire.messages.produce import (
    PartitionProduceData,
    ProduceRequest,
    TopicProduceData,
)
from bridgehead.raw_client.codec import encode_message
from bridgehead.slices import LARGE_BYTES
from broker_proxy.client_request import ClientRequest, NoResponseError
from broker_proxy.requests.routing import ROUTING_TABLES
from envelope.server import serve_envelopes
from event_log.events import Responded
from tests.integration.broker_peers import (
    API_VERSIONS,
    Controller,
    correlation_id,
    create,
    running,
    until,
)

RECORDING = Path(__file__).parents[1] / "recordings" / "direct-open.jsonl.gz"


async def test_responses_keep_the_order_of_requests() -> None:
    async with running() as (broker, controller):
        client = await broker.connect()
        controller.go.clear()
        client.send(create(1), API_VERSIONS, create(3), create(4))
        await until(lambda: len(controller.seen) == 1)
        with pytest.raises(TimeoutError):
            await client.receive_or_none(within_s=0.2)
        client.send(create(5))  # in its own packet
        await (await broker.connect()).exchange(API_VERSIONS)
        assert len(controller.seen) == 1, "a request started before the previous one was answered"
        controller.go.set()
        assert [correlation_id(await client.receive_or_none()) for _ in range(5)] == [1, 7, 3, 4, 5]


async def test_connections_do_not_wait_for_each_other() -> None:
    async with running() as (broker, controller):
        controller.go.clear()
        clients = [await broker.connect() for _ in range(20)]
        for i, client in enumerate(clients):
            client.send(create(i), create(100 + i))
        await until(lambda: len(controller.seen) == 20)
        assert broker.forwarding.queue_length == 20
        reader = await broker.connect()
        assert correlation_id(await reader.exchange(API_VERSIONS)) == 7
        controller.go.set()
        for i, client in enumerate(clients):
            assert correlation_id(await client.receive_or_none()) == i
            assert correlation_id(await client.receive_or_none()) == 100 + i


async def test_a_request_keeps_its_identity_across_controllers() -> None:
    async with running() as (broker, first):
        second = Controller()
        envelopes = await serve_envelopes("127.0.0.1", 0, second)
        client = await broker.connect()
        assert correlation_id(await client.exchange(create(1))) == 1
        first.go.clear()
        client.send(create(2))
        await until(lambda: len(first.seen) == 2)
        assert broker.channel is not None
        await broker.channel.close()
        with pytest.raises(TimeoutError):
            await client.receive_or_none(within_s=0.1)
        broker.follow(envelopes, 3)
        assert correlation_id(await client.receive_or_none()) == 2
        (again,) = second.seen
        assert again.identity == first.seen[1].identity == (2, "inc", 2)
        assert (again.attempt, again.request_id) == (2, first.seen[1].request_id)
        assert again.request_data == first.seen[1].request_data
        await envelopes.stop()


async def test_a_disconnect_does_not_cancel_a_forwarded_request() -> None:
    async with running() as (broker, controller):
        controller.go.clear()
        client = await broker.connect()
        client.send(create(1))
        await until(lambda: len(controller.seen) == 1)
        client.close()
        await until(lambda: broker.server.connection_count == 0)
        assert broker.forwarding.lowest_unfinished == 1
        controller.go.set()
        await until(lambda: broker.forwarding.lowest_unfinished == 2)
        await until(lambda: broker.log.events[-1].kind == "responded")


async def test_events_are_flushed_before_the_response_is_written() -> None:
    async with running() as (broker, _):
        client = await broker.connect()
        behind = client.writer.get_extra_info("socket").fileno()
        peeked = []

        def look() -> None:
            if any(e.kind == "responded" for e in broker.log.events[broker.log.flushed :]):
                with socket.socket(fileno=os.dup(behind)) as raw:
                    peeked.append(bool(select.select([raw], [], [], 0)[0]))

        broker.log.before_flush = look
        for i in range(20):
            assert await client.exchange(create(i) if i % 2 else API_VERSIONS) is not None
        assert peeked == [False] * 20


async def test_requests_with_equal_client_and_correlation_ids_get_different_request_ids() -> None:
    async with running() as (broker, controller):
        for _ in range(3):
            client = await broker.connect()
            await client.exchange(create(5))
            client.close()
        assert [e.request_id for e in controller.seen] == [
            "2.boot.1.1.5",
            "2.boot.2.1.5",
            "2.boot.3.1.5",
        ]
        assert {e.client_address for e in controller.seen} == {b"\x7f\0\0\1"}


def _recorded_malformed() -> list[Any]:
    for line in gzip.decompress(RECORDING.read_bytes()).splitlines():
        case = json.loads(line)
        if case["case"] == "malformed":
            return [pytest.param(step, id=step["raw"][:24] or "empty") for step in case["steps"]]
    raise AssertionError("the recording has no case `malformed`")


@pytest.mark.parametrize("step", _recorded_malformed())
async def test_malformed_frames_are_handled_as_by_kafka(step: Any) -> None:
    async with running() as (broker, controller):
        client = await broker.connect()
        client.send(bytes.fromhex(step["raw"]))
        response = await client.receive_or_none()
        if step.get("closed"):
            assert response is None
            assert controller.seen == [], "a malformed request was forwarded"
            return
        recorded = bytes.fromhex(step["response_hex"])
        assert correlation_id(response) == correlation_id(recorded)
        assert response is not None
        # The response to an unsupported version of ApiVersions has the same bytes as Kafka's.
        if recorded[4:6] == b"\0\x23":
            assert response == recorded
        key = int(step["raw"][:4], 16)
        assert key == 18 or len(controller.seen) == 1


async def test_api_versions_lists_the_served_apis() -> None:
    async with running() as (broker, _):
        response = await (await broker.connect()).exchange(API_VERSIONS)
        assert response is not None
        _, at = decode_response_header(18, 0, response)
        served = {key.api_key for key in decode_response(18, 0, response, at).api_keys}
        assert served == set(ROUTING_TABLES["shipped"])


class _StoresRecords:
    """Produce with acks=0, which gets no response."""

    api_key = ApiKey.PRODUCE

    async def handle(self, request: ClientRequest, message: Any) -> Any:
        raise NoResponseError


async def test_large_requests_without_a_response_are_not_kept() -> None:
    """A producer with acks=0 sends nothing else for days."""
    data = PartitionProduceData(0, bytes(2 * LARGE_BYTES))
    produce = ProduceRequest(acks=0, topic_data=[TopicProduceData("t", [data])])
    async with running() as (broker, _):
        cast(Any, broker.server.services.dispatcher)._local_apis[0] = _StoresRecords()
        connection = await broker.connect()
        for _ in range(5):
            connection.send(encode_message(ApiKey.PRODUCE, 9, produce))
        async with asyncio.timeout(20):
            while sum(isinstance(event, Responded) for event in broker.log.events) < 5:
                await asyncio.sleep(0.01)
            (client,) = broker.server._protocols
            while client._task is not None:
                await asyncio.sleep(0.01)
        assert client._large == []
        connection.close()
