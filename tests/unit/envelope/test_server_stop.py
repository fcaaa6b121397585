"""A controller that stops waits for its streams, but not for a stream that never ends."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Coroutine
from contextlib import suppress
from types import MappingProxyType

import pytest

from chaos.simulated.network import NetworkLoop
from chaos.simulated.virtual_time import virtual_host
from cluster_model.principal import KafkaPrincipal
from envelope._pb import envelope_pb2 as pb
from envelope.messages import Envelope, EnvelopeReply, Hello
from envelope.server import STREAMS_END_WITHIN_S, BrokerPeer, EnvelopeServer, EnvelopeServicer
from envelope.stream import HEARTBEAT_EVERY_S


class Handler:
    """Counts the open streams."""

    def __init__(self) -> None:
        self.open = 0

    async def handle(self, envelope: Envelope, sender: BrokerPeer) -> EnvelopeReply:
        raise AssertionError

    def connected(self, peer: BrokerPeer) -> None:
        self.open += 1

    def disconnected(self, peer: BrokerPeer) -> None:
        self.open -= 1

    def rejected(self, hello: Hello, principal: KafkaPrincipal | None, reason: str) -> None:
        raise AssertionError

    def batch_received(self, peer: BrokerPeer, lowest_unfinished: int, applied_zxid: int) -> None:
        pass


class Context:
    """The part of a gRPC context that a stream without TLS uses."""

    def peer(self) -> str:
        return "ipv4:127.0.0.1:4711"


class Grpc:
    """A gRPC server whose `stop` ends no stream."""

    async def stop(self, grace: float) -> None:
        pass


async def heartbeats(count: int) -> AsyncIterator[pb.BrokerBatch]:
    """Yield what a broker sends until it closes the stream."""
    yield pb.BrokerBatch(hello=pb.Hello(broker_id=2, incarnation="i"))
    for _ in range(count):
        await asyncio.sleep(HEARTBEAT_EVERY_S)
        yield pb.BrokerBatch()


FOREVER, SOON = 10**9, 1


class Stopping:
    """One controller with streams, in virtual time."""

    def __init__(self) -> None:
        self.handler = Handler()
        self.servicer = EnvelopeServicer(self.handler, MappingProxyType({}), is_secure=False)
        self.streams: list[asyncio.Task[None]] = []
        self.ends: list[str] = []

    async def stream(self, count: int) -> None:
        async for _ in self.servicer.Channel(heartbeats(count), Context()):
            pass

    async def stubborn_stream(self) -> None:
        """A stream that continues although it is cancelled."""
        with suppress(asyncio.CancelledError):
            await self.stream(FOREVER)
        await asyncio.sleep(FOREVER)

    def took_s(self, *streams: Coroutine[None, None, None]) -> float:
        """Open the streams and stop the server; return how long the stop took."""
        loop = NetworkLoop(1)

        async def main() -> float:
            self.streams = [asyncio.create_task(stream) for stream in streams]
            await asyncio.sleep(HEARTBEAT_EVERY_S / 2)
            assert self.handler.open == len(streams)
            began_s = time.monotonic()
            await EnvelopeServer(Grpc(), self.servicer, 1).stop()
            took_s = time.monotonic() - began_s
            self.ends = [_end(stream) for stream in self.streams]
            left = asyncio.all_tasks() - {asyncio.current_task()}
            for task in left:
                task.cancel()
            await asyncio.gather(*left, return_exceptions=True)
            return took_s

        with virtual_host(loop, 1):
            return loop.run_until_complete(main())


def _end(stream: asyncio.Task[None]) -> str:
    if not stream.done():
        return "open"
    return "cancelled" if stream.cancelled() else "ended"


@pytest.fixture
def stopping() -> Stopping:
    return Stopping()


def test_a_stop_waits_until_its_streams_have_ended(stopping: Stopping) -> None:
    took_s = stopping.took_s(stopping.stream(SOON), stopping.stream(SOON))
    assert took_s == pytest.approx(HEARTBEAT_EVERY_S / 2, abs=0.1)
    assert stopping.ends == ["ended", "ended"]
    assert stopping.handler.open == 0


def test_a_stop_cancels_a_stream_that_never_ends(stopping: Stopping) -> None:
    took_s = stopping.took_s(stopping.stream(SOON), stopping.stream(FOREVER))
    assert took_s == pytest.approx(STREAMS_END_WITHIN_S, abs=0.1)
    assert stopping.ends == ["ended", "cancelled"]
    assert stopping.handler.open == 0


def test_a_stop_ends_although_a_stream_ignores_that_it_is_cancelled(
    stopping: Stopping, caplog: pytest.LogCaptureFixture
) -> None:
    took_s = stopping.took_s(stopping.stubborn_stream())
    assert took_s == pytest.approx(2 * STREAMS_END_WITHIN_S, abs=0.1)
    assert stopping.ends == ["open"]
    assert "channels still open although they were cancelled: 1" in caplog.text
