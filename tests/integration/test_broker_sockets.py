"""The listeners over real sockets: order, forwarding over a channel, hostile clients, the end."""

from __future__ import annotations

import asyncio
import gzip
import itertools
import json
import os
import random
import select
import socket
import struct
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import pytest
from prometheus_client import CollectorRegistry

from bridgehead.kafka_wire.codec import decode_response, encode_request, encode_response
from bridgehead.kafka_wire.framing import frame
from bridgehead.kafka_wire.headers import (
    RequestHeader,
    decode_request_header,
    decode_response_header,
    encode_request_header,
    encode_response_header,
)
from bridgehead.kafka_wire.messages.create_topics import (
    CreatableTopic,
    CreateTopicsRequest,
    CreateTopicsResponse,
)
from broker_proxy.apis.api_versions import ApiVersions
from broker_proxy.dispatch import Dispatcher
from broker_proxy.forwarding import ForwardingManager, Target
from broker_proxy.routing import DIALECTS
from broker_proxy.server import KafkaServer, Limits, Listener
from envelope.channel import ControllerChannel
from envelope.messages import Envelope, EnvelopeAnswer, Hello
from envelope.principal_serde import DefaultPrincipalSerde
from envelope.server import BrokerPeer, EnvelopeServer, serve_envelopes
from event_log.events import Event
from metrics.node_metrics import NodeMetrics

RECORDING = Path(__file__).parents[1] / "recordings" / "direct-open.jsonl.gz"
API_VERSIONS = encode_request_header(RequestHeader(18, 0, 7, "c"))
ANSWER_BYTES = 14 + 6 * len(DIALECTS["shipped"])  # of ApiVersions, with its length


class Controller:
    """Answers CreateTopics with nothing refused; holds back while told to."""

    def __init__(self) -> None:
        self.seen: list[Envelope] = []
        self.go = asyncio.Event()
        self.go.set()

    async def handle(self, envelope: Envelope, sender: BrokerPeer) -> EnvelopeAnswer:
        self.seen.append(envelope)
        await self.go.wait()
        header, _ = decode_request_header(envelope.request_header)
        head = encode_response_header(header.api_key, header.api_version, header.correlation_id)
        body = encode_response(header.api_key, header.api_version, CreateTopicsResponse())
        return EnvelopeAnswer(0, head + body, envelope.identity.sequence)

    def connected(self, peer: BrokerPeer) -> None:
        pass

    def disconnected(self, peer: BrokerPeer) -> None:
        pass

    def batch_received(self, peer: BrokerPeer, lowest_unfinished: int, applied_zxid: int) -> None:
        pass


class Memory:
    """The evidence, in memory; `flushed` is how much of it the operating system has."""

    def __init__(self) -> None:
        self.events: list[Event] = []
        self.flushed = 0
        self.before_flush: Callable[[], None] = lambda: None

    def append(self, event: Event) -> None:
        self.events.append(event)

    def flush(self) -> None:
        self.before_flush()
        self.flushed = len(self.events)


class Broker:
    """A broker's shell: listeners, forwarding, one local API."""

    def __init__(self, **limits: int) -> None:
        self.log = Memory()
        self.closed: list[ControllerChannel] = []
        metrics = NodeMetrics(CollectorRegistry(), now_s=time.monotonic)
        self.forwarding = ForwardingManager(
            broker_id=2,
            incarnation="inc",
            serde=DefaultPrincipalSerde(),
            request_timeout_ms=10_000,
            log=self.log,
            now_s=time.monotonic,
            broker_epoch=lambda: 1,
            redirected=metrics.message_redirected,
        )
        dispatcher = Dispatcher(
            local_apis={18: ApiVersions(DIALECTS, lambda: 0)},
            split_apis={},
            forwarding=self.forwarding,
            forwarding_enabled=True,
            is_controller=lambda: False,
            image_zxid=lambda: 0,
            now_ns=time.monotonic_ns,
            log=self.log,
            metrics=metrics,
        )
        chosen = {"frame_bytes_max": 1_000_000, "idle_ms_max": 600_000} | limits
        self.server = KafkaServer(
            dispatcher=dispatcher,
            limits=Limits(**chosen),
            request_prefix="2.boot",
            log=self.log,
            now_s=time.monotonic,
            now_ns=time.monotonic_ns,
        )
        self.channel: ControllerChannel | None = None
        self.port = 0

    async def start(self) -> None:
        listener = await self.server.bind(Listener("PLAINTEXT", "PLAINTEXT", "127.0.0.1", 0))
        self.port = listener.port
        await self.server.serve()

    def follow(self, controller: EnvelopeServer, controller_id: int = 1) -> None:
        """Open a channel, as the node does when the controller moves."""
        self.channel = ControllerChannel(
            f"127.0.0.1:{controller.port}",
            Hello(2, "inc", 1, "cluster"),
            on_update=lambda update: None,
            on_closed=lambda: self.forwarding.set_target(None),
            lowest_unfinished=lambda: self.forwarding.lowest_unfinished,
            applied_zxid=lambda: 0,
        )
        self.forwarding.set_target(Target(self.channel, controller_id, is_local=False))

    async def connect(self) -> Client:
        return Client(*await asyncio.open_connection("127.0.0.1", self.port))


class Client:
    """A client that writes what it likes."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader, self.writer = reader, writer

    def send(self, *payloads: bytes) -> None:
        self.writer.write(b"".join(map(frame, payloads)))

    async def answer(self, within_s: float = 5.0) -> bytes | None:
        """Return the next answer without its length; None when the connection was closed."""
        async with asyncio.timeout(within_s):
            try:
                (length,) = struct.unpack(">i", await self.reader.readexactly(4))
                return await self.reader.readexactly(length)
            except (asyncio.IncompleteReadError, ConnectionError):
                return None

    async def ask(self, payload: bytes) -> bytes | None:
        self.send(payload)
        return await self.answer()

    def close(self) -> None:
        self.writer.close()


@asynccontextmanager
async def _running(
    controller: Controller | None = None, **limits: int
) -> AsyncIterator[tuple[Broker, Controller]]:
    controller = controller or Controller()
    envelopes = await serve_envelopes("127.0.0.1", 0, controller)
    broker = Broker(**limits)
    await broker.start()
    broker.follow(envelopes)
    try:
        yield broker, controller
    finally:
        await broker.server.stop(0)
        assert broker.channel is not None
        await broker.channel.close()
        await envelopes.stop()


def _create(correlation_id: int, name: str = "orders") -> bytes:
    message = CreateTopicsRequest(topics=[CreatableTopic(name=name, num_partitions=1)])
    header = RequestHeader(19, 5, correlation_id, "c")
    return encode_request_header(header) + encode_request(19, 5, message)


def _correlation_id(answer: bytes | None) -> int:
    assert answer is not None
    return struct.unpack_from(">i", answer)[0]


async def _until(condition: Callable[[], bool], within_s: float = 5.0) -> None:
    async with asyncio.timeout(within_s):
        while not condition():  # any condition at all
            await asyncio.sleep(0.005)


async def test_answers_come_in_the_order_asked_and_one_request_at_a_time() -> None:
    """Writes and reads mixed in one packet: the read behind a write waits for it."""
    async with _running() as (broker, controller):
        client = await broker.connect()
        controller.go.clear()
        client.send(_create(1), API_VERSIONS, _create(3), _create(4))
        await _until(lambda: len(controller.seen) == 1)
        with pytest.raises(TimeoutError):
            await client.answer(within_s=0.2)
        client.send(_create(5))  # in a packet of its own
        await (await broker.connect()).ask(API_VERSIONS)
        assert len(controller.seen) == 1, "the next one starts only when this one is answered"
        controller.go.set()
        assert [_correlation_id(await client.answer()) for _ in range(5)] == [1, 7, 3, 4, 5]


async def test_connections_do_not_wait_for_each_other() -> None:
    """Twenty forwarded requests of twenty connections are in flight at once."""
    async with _running() as (broker, controller):
        controller.go.clear()
        clients = [await broker.connect() for _ in range(20)]
        for i, client in enumerate(clients):
            client.send(_create(i), _create(100 + i))
        await _until(lambda: len(controller.seen) == 20)
        assert broker.forwarding.queue_length == 20
        reader = await broker.connect()
        assert _correlation_id(await reader.ask(API_VERSIONS)) == 7
        controller.go.set()
        for i, client in enumerate(clients):
            assert _correlation_id(await client.answer()) == i
            assert _correlation_id(await client.answer()) == 100 + i


async def test_a_request_whose_channel_broke_goes_to_the_next_controller_as_itself() -> None:
    """The client sees one answer, both controllers see one identity."""
    async with _running() as (broker, first):
        second = Controller()
        envelopes = await serve_envelopes("127.0.0.1", 0, second)
        client = await broker.connect()
        assert _correlation_id(await client.ask(_create(1))) == 1
        first.go.clear()
        client.send(_create(2))
        await _until(lambda: len(first.seen) == 2)
        assert broker.channel is not None
        await broker.channel.close()
        with pytest.raises(TimeoutError):
            await client.answer(within_s=0.1)
        broker.follow(envelopes, 3)
        assert _correlation_id(await client.answer()) == 2
        (again,) = second.seen
        assert again.identity == first.seen[1].identity == (2, "inc", 2)
        assert (again.attempt, again.request_id) == (2, first.seen[1].request_id)
        assert again.request_data == first.seen[1].request_data
        await envelopes.stop()


async def test_a_client_that_leaves_does_not_cancel_its_request() -> None:
    """As in Kafka; the connection is forgotten, the sequence is finished."""
    async with _running() as (broker, controller):
        controller.go.clear()
        client = await broker.connect()
        client.send(_create(1))
        await _until(lambda: len(controller.seen) == 1)
        client.close()
        await _until(lambda: broker.server.connection_count == 0)
        assert broker.forwarding.lowest_unfinished == 1
        controller.go.set()
        await _until(lambda: broker.forwarding.lowest_unfinished == 2)
        await _until(lambda: broker.log.events[-1].kind == "answered")


async def test_no_answer_is_written_before_its_evidence_is_handed_over() -> None:
    """Whenever events are handed over, the answer they speak of is not yet with the client."""
    async with _running() as (broker, _):
        client = await broker.connect()
        behind = client.writer.get_extra_info("socket").fileno()
        peeked = []

        def look() -> None:
            if any(e.kind == "answered" for e in broker.log.events[broker.log.flushed :]):
                with socket.socket(fileno=os.dup(behind)) as raw:
                    peeked.append(bool(select.select([raw], [], [], 0)[0]))

        broker.log.before_flush = look
        for i in range(20):
            assert await client.ask(_create(i) if i % 2 else API_VERSIONS) is not None
        assert peeked == [False] * 20


async def test_two_clients_with_equal_ports_and_ids_get_different_request_ids() -> None:
    """Ids are made from our own counters."""
    async with _running() as (broker, controller):
        for _ in range(3):
            client = await broker.connect()
            await client.ask(_create(5))
            client.close()
        assert [e.request_id for e in controller.seen] == [
            "2.boot.1.1.5",
            "2.boot.2.1.5",
            "2.boot.3.1.5",
        ]
        assert {e.client_host for e in controller.seen} == {b"\x7f\0\0\1"}


# Frames on which a recorded Kafka closed or answered, beyond what one API's handler decides.
def _recorded_malformed() -> list[Any]:
    for line in gzip.decompress(RECORDING.read_bytes()).splitlines():
        case = json.loads(line)
        if case["case"] == "malformed":
            return [pytest.param(step, id=step["raw"][:24] or "empty") for step in case["steps"]]
    raise AssertionError("the recording has no case `malformed`")


@pytest.mark.parametrize("step", _recorded_malformed())
async def test_malformed_frames_are_closed_and_answered_as_a_real_kafka_did(step: Any) -> None:
    """Closed without an answer, or answered: to the byte where nothing of a cluster is in it."""
    async with _running() as (broker, controller):
        client = await broker.connect()
        answer = await client.ask(bytes.fromhex(step["raw"]))
        if step.get("closed"):
            assert answer is None
            assert controller.seen == [], "what is malformed is not forwarded"
            return
        recorded = bytes.fromhex(step["response_hex"])
        assert _correlation_id(answer) == _correlation_id(recorded)
        assert answer is not None
        if recorded[4:6] == b"\0\x23":  # ApiVersions, unsupported: nothing but protocol in it
            assert answer == recorded
        key = int(step["raw"][:4], 16)
        assert key == 18 or len(controller.seen) == 1


async def test_api_versions_lists_what_is_served() -> None:
    """Nothing else is advertised."""
    async with _running() as (broker, _):
        answer = await (await broker.connect()).ask(API_VERSIONS)
        assert answer is not None
        _, at = decode_response_header(18, 0, answer)
        served = {key.api_key for key in decode_response(18, 0, answer, at).api_keys}
        assert served == set(DIALECTS["shipped"])


async def test_a_frame_beyond_the_cap_closes_after_what_came_before_was_answered() -> None:
    """Before any of it is buffered."""
    async with _running(frame_bytes_max=1_000) as (broker, _):
        client = await broker.connect()
        client.writer.write(frame(API_VERSIONS) + struct.pack(">i", 1_001))
        assert _correlation_id(await client.answer()) == 7
        assert await client.answer() is None
        client = await broker.connect()
        client.writer.write(b"\xff\xff\xff\xff")
        assert await client.answer() is None


async def test_a_slow_client_is_served_and_a_silent_one_is_closed() -> None:
    """A byte every few milliseconds is activity; half a length and then nothing is not."""
    async with _running(idle_ms_max=400) as (broker, _):
        slow, silent = await broker.connect(), await broker.connect()
        silent.writer.write(b"\0\0")
        for byte in frame(API_VERSIONS):
            slow.writer.write(bytes([byte]))
            await slow.writer.drain()
            await asyncio.sleep(0.03)
        assert _correlation_id(await slow.answer()) == 7
        assert await silent.answer() is None
        assert await slow.answer() is None, "idle now as well"
        await _until(lambda: broker.server.connection_count == 0)


async def test_a_client_that_waits_for_a_long_write_is_not_idle() -> None:
    """Its request is being executed."""
    async with _running(idle_ms_max=200) as (broker, controller):
        controller.go.clear()
        client = await broker.connect()
        client.send(_create(1))
        with pytest.raises(TimeoutError):
            await client.answer(within_s=0.8)
        controller.go.set()
        assert _correlation_id(await client.answer()) == 1


async def test_a_client_that_never_reads_is_no_longer_read_and_then_closed() -> None:
    """Its answers fill the sockets and one buffer; then nothing more is taken from it."""
    async with _running(idle_ms_max=1_500) as (broker, _):
        greedy = socket.create_connection(("127.0.0.1", broker.port))
        greedy.setblocking(False)
        async with asyncio.timeout(10):
            with pytest.raises(ConnectionError):
                await _send_for_ever(greedy, frame(API_VERSIONS) * 1_000)
        answered = sum(e.kind == "answered" for e in broker.log.events)
        assert answered * ANSWER_BYTES < 32 * 1024 * 1024, "the sockets' buffers and one of ours"
        other = await broker.connect()
        assert _correlation_id(await other.ask(API_VERSIONS)) == 7
        await _until(lambda: broker.server.connection_count <= 1)
        greedy.close()


async def _send_for_ever(client: socket.socket, data: bytes) -> None:
    while True:
        await asyncio.get_running_loop().sock_sendall(client, data)


async def test_one_connection_more_than_allowed_is_closed_at_once() -> None:
    """The others stay."""
    async with _running(connections_max=2) as (broker, _):
        first, second, third = [await broker.connect() for _ in range(3)]
        assert await third.answer() is None
        assert _correlation_id(await first.ask(API_VERSIONS)) == 7
        second.close()
        await _until(lambda: broker.server.connection_count == 1)
        assert _correlation_id(await (await broker.connect()).ask(API_VERSIONS)) == 7


async def test_stopping_lets_what_runs_end_and_accepts_no_more() -> None:
    """The answer still reaches its client, then the connection is closed."""
    async with _running() as (broker, controller):
        controller.go.clear()
        client, idle = await broker.connect(), await broker.connect()
        client.send(_create(1))
        await _until(lambda: len(controller.seen) == 1)
        stopping = asyncio.create_task(broker.server.stop(5.0))
        await asyncio.sleep(0)
        with pytest.raises(ConnectionRefusedError):
            await broker.connect()
        controller.go.set()
        assert _correlation_id(await client.answer()) == 1
        await asyncio.wait_for(stopping, 3)
        assert await client.answer() is None
        assert await idle.answer() is None
        assert broker.server.connection_count == 0


async def test_stopping_is_bounded_though_a_request_hangs() -> None:
    """Nobody waits for a controller that does not answer."""
    async with _running() as (broker, controller):
        controller.go.clear()
        client = await broker.connect()
        client.send(_create(1))
        await _until(lambda: len(controller.seen) == 1)
        await asyncio.wait_for(broker.server.stop(0.2), 2)
        assert await client.answer() is None


def _hostile(number: int, chance: random.Random) -> bytes:
    """One damaged stream: flipped, cut, over-long, of unknown version, or noise."""
    data = bytearray(frame(_create(number)) + frame(API_VERSIONS))
    match number % 6:
        case 0:
            for _ in range(chance.randrange(1, 6)):
                data[chance.randrange(len(data))] ^= 1 << chance.randrange(8)
        case 1:
            del data[chance.randrange(len(data)) :]
        case 2:
            data[:4] = struct.pack(">i", chance.choice([-1, -(2**31), 2**31 - 1, 999_999]))
        case 3:
            data[4:8] = struct.pack(">hh", chance.randrange(-2, 120), chance.randrange(-2, 30))
        case 4:
            data[chance.randrange(8, len(data)) :] = chance.randbytes(chance.randrange(60))
        case _:
            data = bytearray(chance.randbytes(chance.randrange(1, 200)))
    return bytes(data)


async def test_thousands_of_hostile_streams_leave_other_clients_unaffected() -> None:
    """3,000 of them, some left half-open, beside a client that asks all the time."""
    chance = random.Random(590)
    async with _running(frame_bytes_max=1_000_000) as (broker, _):
        bystander = await broker.connect()
        slowest, done = 0.0, asyncio.Event()

        async def ask_on() -> None:
            nonlocal slowest
            for number in itertools.count():
                if done.is_set():
                    return
                began = time.monotonic()
                assert _correlation_id(await bystander.ask(_create(number))) == number
                slowest = max(slowest, time.monotonic() - began)

        async def attack(number: int, kept: list[Client]) -> None:
            client = await broker.connect()
            client.writer.write(_hostile(number, chance))
            if number % 10 == 0:
                kept.append(client)
                return
            with suppress(TimeoutError, ConnectionError):
                client.writer.write_eof()
                async with asyncio.timeout(5):
                    while await client.reader.read(65_536):
                        pass
            client.close()

        asking = asyncio.create_task(ask_on())
        half_open: list[Client] = []
        for start in range(0, 3_000, 30):
            await asyncio.gather(*(attack(n, half_open) for n in range(start, start + 30)))
        done.set()
        await asyncio.wait_for(asking, 10)
        assert slowest < 2.0
        for client in half_open:
            client.close()
        await _until(lambda: broker.server.connection_count == 1)
        assert broker.forwarding.queue_length == 0
        assert _correlation_id(await bystander.ask(API_VERSIONS)) == 7
