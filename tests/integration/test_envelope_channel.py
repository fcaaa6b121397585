"""The channel between a broker and the controller, over real gRPC, in one process and in two."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import grpc
import grpc.aio
import pytest

from cluster_model.principal import KafkaPrincipal
from envelope._pb import envelope_pb2 as pb
from envelope._pb.envelope_pb2_grpc import ControllerStub
from envelope.channel import ControllerChannel
from envelope.conversion import envelope_to_pb
from envelope.messages import (
    ApiRanges,
    ChannelClosedError,
    Envelope,
    EnvelopeReply,
    Hello,
    MetadataUpdate,
    RequestIdentity,
)
from envelope.server import BrokerPeer, EnvelopeServer, serve_envelopes
from envelope.stream import SILENCE_MAX_S

ROOT = Path(__file__).parents[2]
HELLO = Hello(2, "inc")
METHOD = "/bridgehead.envelope.v1.Controller/Channel"
SERVED = {19: (0, 7), 37: (2, 3)}
# The channel closes after 1.8 s of silence; the rest of the time allows for a busy machine.
# TCP alone would notice a frozen peer only after minutes.
NOTICED_WITHIN_S = 6.0


class Controller:
    """Replies with `response`, or with the request's body; records Envelopes and peers."""

    def __init__(self) -> None:
        self.seen: list[Envelope] = []
        self.peers: list[BrokerPeer] = []
        self.gone: list[BrokerPeer] = []
        self.progress: list[tuple[int, int]] = []
        self.response: Callable[[Envelope], asyncio.Future[EnvelopeReply]] | None = None

    async def handle(self, envelope: Envelope, sender: BrokerPeer) -> EnvelopeReply:
        self.seen.append(envelope)
        if self.response is not None:
            return await self.response(envelope)
        return EnvelopeReply(0, envelope.request_data, envelope.identity.sequence)

    def connected(self, peer: BrokerPeer) -> None:
        self.peers.append(peer)

    def disconnected(self, peer: BrokerPeer) -> None:
        self.gone.append(peer)

    def rejected(self, hello: Hello, principal: KafkaPrincipal | None, reason: str) -> None:
        raise AssertionError(reason)

    def batch_received(self, peer: BrokerPeer, lowest_unfinished: int, applied_zxid: int) -> None:
        self.progress.append((lowest_unfinished, applied_zxid))


class Broker:
    """A channel and everything received on it."""

    def __init__(self, port: int) -> None:
        self.updates: list[MetadataUpdate] = []
        self.closed = asyncio.Event()
        self.lowest, self.zxid = 1, 0
        self.welcomes: list[ApiRanges] = []
        self.channel = ControllerChannel(
            f"127.0.0.1:{port}",
            HELLO,
            on_update=self.updates.append,
            on_closed=self.closed.set,
            lowest_unfinished=lambda: self.lowest,
            applied_zxid=lambda: self.zxid,
            on_welcome=self.welcomes.append,
        )

    def send(self, sequence: int, body: bytes = b"body") -> asyncio.Future[EnvelopeReply]:
        return self.channel.send(_envelope(sequence, body))


def _envelope(sequence: int, body: bytes) -> Envelope:
    return Envelope(
        identity=RequestIdentity(2, "inc", sequence),
        request_header=b"\0\x13",
        request_data=body,
        principal=b"p",
        client_address=b"\x7f\0\0\1",
        listener_name="PLAINTEXT",
        security_protocol="SASL_SSL",
        dialect="shipped",
        remaining_ms=29_000,
        request_id=f"r{sequence}",
        attempt=3,
    )


def _batch_of(field: str, value: str) -> bytes:
    """Return a BrokerBatch with one Envelope, whose `field` is `value`."""
    batch = pb.BrokerBatch()
    envelope_to_pb(_envelope(1, b"body"), batch.envelopes.add())
    setattr(batch.envelopes[0], field, value)
    return batch.SerializeToString()


@asynccontextmanager
async def _connected(controller: Controller) -> AsyncIterator[tuple[EnvelopeServer, Broker]]:
    server = await serve_envelopes("127.0.0.1", 0, controller, served=SERVED)
    broker = Broker(server.port)
    try:
        yield server, broker
    finally:
        await broker.channel.close()
        await server.stop()


async def _until(condition: Callable[[], bool], within_s: float = 60.0) -> float:
    """Wait for a condition; return how long it took."""
    began = time.monotonic()
    while not condition():
        assert time.monotonic() - began < within_s, "the condition did not become true"
        await asyncio.sleep(0.01)
    return time.monotonic() - began


async def test_every_field_of_an_envelope_and_a_reply_arrives() -> None:
    controller = Controller()
    async with _connected(controller) as (_, broker):
        assert await broker.send(1) == EnvelopeReply(0, b"body", 1)
        assert controller.seen == [_envelope(1, b"body")]
        assert controller.peers[0].hello == HELLO

        async def reject(_: Envelope) -> EnvelopeReply:
            return EnvelopeReply(41, None, 9)

        controller.response = lambda envelope: asyncio.ensure_future(reject(envelope))
        assert await broker.send(2) == EnvelopeReply(41, None, 9)


async def test_a_stream_begins_with_the_controllers_api_versions() -> None:
    async with _connected(Controller()) as (_, broker):
        await broker.send(1)
        assert broker.welcomes == [SERVED]


async def test_replies_arrive_in_any_order() -> None:
    controller = Controller()
    held: dict[int, asyncio.Future[EnvelopeReply]] = {}

    def hold(envelope: Envelope) -> asyncio.Future[EnvelopeReply]:
        return held.setdefault(
            envelope.identity.sequence, asyncio.get_running_loop().create_future()
        )

    controller.response = hold
    async with _connected(controller) as (_, broker):
        replies = {i: broker.send(i) for i in range(1, 101)}
        await _until(lambda: len(held) == 100)
        assert [e.identity.sequence for e in controller.seen] == list(range(1, 101))
        for i in range(100, 0, -1):
            held[i].set_result(EnvelopeReply(0, b"%d" % i, i))
            assert await replies[i] == EnvelopeReply(0, b"%d" % i, i)


async def test_metadata_updates_arrive_in_order() -> None:
    """The updates do not fit in one message of the stream."""
    controller = Controller()
    async with _connected(controller) as (_, broker):
        await broker.send(1)
        pushed = [
            MetadataUpdate(3, 8, i, b"x" * 2_000, starts_full_image=i == 0, complete=i > 5)
            for i in range(1_500)
        ]
        for update in pushed:
            controller.peers[0].push(update)
        await _until(lambda: len(broker.updates) == len(pushed))
        assert broker.updates == pushed


async def test_the_controller_learns_the_brokers_latest_progress() -> None:
    controller = Controller()
    async with _connected(controller) as (_, broker):
        await broker.send(1)
        broker.lowest, broker.zxid = 12, 500
        await _until(lambda: (12, 500) in controller.progress)


async def test_a_large_envelope_arrives() -> None:
    controller = Controller()
    async with _connected(controller) as (_, broker):
        body = bytes(20 * 1024 * 1024)
        small = broker.send(1)
        reply = await broker.send(2, body)
        assert reply.response_data == body
        assert (await small).zxid == 1


async def test_heartbeats_keep_an_idle_channel_open() -> None:
    controller = Controller()
    async with _connected(controller) as (_, broker):
        await broker.send(1)
        closed = asyncio.create_task(broker.closed.wait())
        await asyncio.wait([closed], timeout=2.6)
        assert not closed.done()
        closed.cancel()
        assert (await broker.send(2)).zxid == 2
        assert controller.gone == []


async def test_a_stopped_controller_fails_all_pending_envelopes() -> None:
    controller = Controller()
    controller.response = lambda _: asyncio.get_running_loop().create_future()
    async with _connected(controller) as (server, broker):
        replies = [broker.send(i) for i in range(5)]
        await _until(lambda: len(controller.seen) == 5)
        await server.stop()
        results = await asyncio.wait_for(asyncio.gather(*replies, return_exceptions=True), 60)
        assert all(isinstance(result, ChannelClosedError) for result in results)
        await asyncio.wait_for(broker.closed.wait(), 60)
        with pytest.raises(ChannelClosedError):
            await broker.send(6)
        assert controller.gone == controller.peers


def test_no_stream_outlives_the_server(
    caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]
) -> None:
    """Otherwise gRPC prints a traceback for each stream when the event loop ends."""

    async def stop_with_open_streams() -> None:
        server = await serve_envelopes("127.0.0.1", 0, Controller())
        brokers = [Broker(server.port) for _ in range(5)]
        await _until(lambda: all(broker.welcomes for broker in brokers))
        async with grpc.aio.insecure_channel(f"127.0.0.1:{server.port}") as channel:
            without_hello = channel.stream_stream(METHOD, None, None)(None)
            await without_hello.wait_for_connection()
            await server.stop()

    asyncio.run(stop_with_open_streams())
    assert "Traceback" not in capfd.readouterr().err
    assert not [record for record in caplog.records if record.exc_info]


async def test_an_unreachable_controller_closes_the_channel() -> None:
    server = await serve_envelopes("127.0.0.1", 0, Controller())
    await server.stop()
    broker = Broker(server.port)
    with pytest.raises(ChannelClosedError):
        await asyncio.wait_for(broker.send(1), 60)
    assert broker.closed.is_set()


async def test_a_channel_closed_before_it_connects_fails_its_envelopes() -> None:
    broker = Broker(1)
    reply = broker.send(1)
    await broker.channel.close()
    with pytest.raises(ChannelClosedError):
        await reply
    assert broker.closed.is_set()


async def test_an_exception_in_the_handler_returns_an_outer_error() -> None:
    """After UNKNOWN_SERVER_ERROR the outcome is unknown. Other Envelopes are unaffected."""
    controller = Controller()

    async def fault(envelope: Envelope) -> EnvelopeReply:
        if envelope.identity.sequence == 1:
            raise RuntimeError("a fault")
        return EnvelopeReply(0, b"", 5)

    controller.response = lambda envelope: asyncio.ensure_future(fault(envelope))
    async with _connected(controller) as (_, broker):
        bad, good = broker.send(1), broker.send(2)
        assert await bad == EnvelopeReply(-1, None, 0)
        assert (await good).zxid == 5


async def test_requests_continue_after_their_stream_broke() -> None:
    controller = Controller()
    started, finish, finished = asyncio.Event(), asyncio.Event(), asyncio.Event()

    async def slow(_: Envelope) -> EnvelopeReply:
        started.set()
        await finish.wait()
        finished.set()
        return EnvelopeReply(0, b"", 0)

    controller.response = lambda envelope: asyncio.ensure_future(slow(envelope))
    async with _connected(controller) as (_, broker):
        reply = broker.send(1)
        await started.wait()
        await broker.channel.close()
        with pytest.raises(ChannelClosedError):
            await reply
        await _until(lambda: controller.gone == controller.peers)
        finish.set()
        await asyncio.wait_for(finished.wait(), 60)


async def test_a_stream_without_hello_is_rejected() -> None:
    controller = Controller()
    server = await serve_envelopes("127.0.0.1", 0, controller)

    async def nothing() -> AsyncIterator[pb.BrokerBatch]:
        await asyncio.Event().wait()
        yield pb.BrokerBatch()

    async def no_hello() -> AsyncIterator[pb.BrokerBatch]:
        yield pb.BrokerBatch(heartbeat=True)

    async with grpc.aio.insecure_channel(f"127.0.0.1:{server.port}") as channel:
        for batches in (no_hello(), nothing()):
            with pytest.raises(grpc.aio.AioRpcError) as rejected:
                async for _ in ControllerStub(channel).Channel(batches):
                    pass
            assert rejected.value.code() is grpc.StatusCode.INVALID_ARGUMENT
    assert controller.peers == []
    await server.stop()


@pytest.mark.parametrize(
    "second",
    [
        b"\xff" * 60,
        _batch_of("request_id", "r\n[2026-01-01] INFO forged"),
        _batch_of("request_id", "r" * 1_000_000),
        _batch_of("incarnation", "inc\x1b[2J"),
        _batch_of("listener_name", "L" * 1_000),
        _batch_of("security_protocol", "\u2028"),
    ],
    ids=["noise", "line-break", "long-id", "escape", "long-listener", "separator"],
)
async def test_a_malformed_message_closes_the_stream_and_logs_one_line(
    second: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    """The log has no traceback and none of the sender's bytes."""
    controller = Controller()
    server = await serve_envelopes("127.0.0.1", 0, controller)
    hello = pb.BrokerBatch(hello=pb.Hello(broker_id=2, incarnation="inc")).SerializeToString()
    async with grpc.aio.insecure_channel(f"127.0.0.1:{server.port}") as channel:
        call = channel.stream_stream(METHOD, None, None)(iter([hello, second]))
        with suppress(grpc.aio.AioRpcError):
            async for _ in call:
                pass
    await _until(lambda: len(controller.gone) == 1)
    await server.stop()
    assert controller.seen == []
    (warning,) = [record for record in caplog.records if record.levelname == "WARNING"]
    assert warning.message == "closing the channel of broker 2: it sent a malformed message"
    assert not any(record.exc_info or "forged" in record.message for record in caplog.records)


async def test_noise_instead_of_hello_is_rejected() -> None:
    server = await serve_envelopes("127.0.0.1", 0, Controller())
    named = pb.BrokerBatch(hello=pb.Hello(broker_id=2, incarnation="i\nn")).SerializeToString()
    async with grpc.aio.insecure_channel(f"127.0.0.1:{server.port}") as channel:
        for first in (b"\xff" * 60, named):
            with pytest.raises(grpc.aio.AioRpcError) as rejected:
                async for _ in channel.stream_stream(METHOD, None, None)(iter([first])):
                    pass
            assert rejected.value.code() is grpc.StatusCode.INVALID_ARGUMENT
    await server.stop()


async def test_binding_a_port_in_use_raises_os_error() -> None:
    server = await serve_envelopes("127.0.0.1", 0, Controller())
    with pytest.raises(OSError, match=str(server.port)):
        await serve_envelopes("127.0.0.1", server.port, Controller())
    await server.stop()


@asynccontextmanager
async def _child(*arguments: str) -> AsyncIterator[asyncio.subprocess.Process]:
    child = await asyncio.create_subprocess_exec(
        sys.executable,
        *("-m", "tests.integration.broker_peers", *arguments),
        cwd=ROOT,
        stdout=asyncio.subprocess.PIPE,
    )
    try:
        yield child
    finally:
        if child.returncode is None:
            with suppress(ProcessLookupError):  # asyncio may not know yet that the child ended.
                os.kill(child.pid, signal.SIGCONT)
                child.kill()
        await child.wait()


async def _line(child: asyncio.subprocess.Process) -> str:
    assert child.stdout is not None
    return (await asyncio.wait_for(child.stdout.readline(), 60)).decode().strip()


async def test_a_paused_controller_is_noticed_within_about_two_seconds() -> None:
    async with _child("controller") as child:
        broker = Broker(int(await _line(child)))
        assert (await broker.send(1)).zxid == 1
        os.kill(child.pid, signal.SIGSTOP)
        reply = broker.send(2)
        began = time.monotonic()
        with pytest.raises(ChannelClosedError):
            await asyncio.wait_for(reply, 60)
        assert time.monotonic() - began < NOTICED_WITHIN_S
        await broker.channel.close()


async def test_a_killed_controller_is_noticed_immediately() -> None:
    async with _child("controller") as child:
        broker = Broker(int(await _line(child)))
        assert (await broker.send(1)).zxid == 1
        child.kill()
        assert await _until(broker.closed.is_set) < SILENCE_MAX_S


async def test_a_paused_broker_is_disconnected_during_a_blocked_write() -> None:
    """`disconnected` is called exactly once."""
    controller = Controller()
    server = await serve_envelopes("127.0.0.1", 0, controller)
    async with _child("broker", str(server.port)) as child:
        assert await _line(child) == "open"
        await _until(lambda: bool(controller.progress))
        os.kill(child.pid, signal.SIGSTOP)
        update = MetadataUpdate(1, 1, 1, bytes(500_000), starts_full_image=True, complete=False)
        for _ in range(100):
            controller.peers[0].push(update)
        assert await _until(lambda: bool(controller.gone)) < NOTICED_WITHIN_S
        os.kill(child.pid, signal.SIGCONT)
        assert await _line(child) == "closed"
        assert controller.gone == controller.peers
    await server.stop()
