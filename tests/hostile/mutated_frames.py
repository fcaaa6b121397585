"""Mutated frames on every listener but TOKENS.

A frame counts as decoded if it gets a response, and as rejected if the node closes the connection.
A Kafka connection is used until a frame is not decoded or has a wrong length. On TLS listeners, a
frame with a wrong length counts as rejected at once. On the gRPC channel a frame is a batch, sent
with a broker's certificate. On the metrics port it is the head of an HTTP request, and counts as
decoded if the status is 200.
"""

from __future__ import annotations

import asyncio
import ssl
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final

import grpc

from tests.hostile.channel import METHOD, batches, credentials, hello
from tests.hostile.metrics_http import heads
from tests.hostile.mutations import Frame, Mutator
from tests.hostile.scram import handshake, token
from tests.hostile.target import BROKERS, CONTROLLER, Target
from tests.hostile.wire import framed

_WORKERS: Final = 24
STRANGER: Final = 12  # a broker id that no broker has
_RESPONSE_WITHIN_S: Final = 30.0
_OPENED_WITHIN_TRIES: Final = 10
# Each listener's share of the frames, in percent. It is small on TLS listeners, where each rejected
# frame costs a handshake.
SHARES: Final = {"OPEN": 50, "DRAFT": 32, "INTERNAL": 12, "SECURE": 2, "MUTUAL": 2}
GRPC, METRICS = "gRPC", "metrics"
OTHER_SHARES: Final = {GRPC: 1, METRICS: 1}
PLAINTEXT: Final = frozenset({"OPEN", "DRAFT", "INTERNAL"})
_LOGIN: Final = framed(handshake("PLAIN")), framed(token(b"\0alice\0alice-secret"))


@dataclass(slots=True)
class FrameOutcomes:
    """The number of frames by outcome and listener."""

    decoded: Counter[str] = field(default_factory=Counter)
    rejected: Counter[str] = field(default_factory=Counter)
    silent: Counter[str] = field(default_factory=Counter)
    unsent: Counter[str] = field(default_factory=Counter)  # the connection failed

    @property
    def sent(self) -> int:
        return sum(map(Counter.total, (self.decoded, self.rejected, self.silent)))


class _Connection:
    """One connection of a worker, opened by the first frame."""

    def __init__(self, address: str, tls: ssl.SSLContext | None, *, logs_in: bool) -> None:
        self._host, _, self._port = address.rpartition(":")
        self._tls = tls
        self._logs_in = logs_in
        self._reader: asyncio.StreamReader | None = None
        self._writer: asyncio.StreamWriter | None = None

    async def _open(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        if self._reader is None or self._writer is None:
            self._reader, self._writer = await asyncio.open_connection(
                self._host, int(self._port), ssl=self._tls
            )
            for frame in _LOGIN if self._logs_in else ():
                self._writer.write(frame)
                await self._response(self._reader)
        return self._reader, self._writer

    @staticmethod
    async def _response(reader: asyncio.StreamReader) -> None:
        length = int.from_bytes(await reader.readexactly(4), "big")
        await reader.readexactly(length)

    async def send(self, frame: Frame) -> str:
        """Send a frame; return `decoded`, `rejected` or `silent`."""
        reader, writer = await self._open()
        try:
            writer.write(frame.data)
            if frame.has_wrong_length and writer.can_write_eof():
                writer.write_eof()
            elif frame.has_wrong_length:  # TLS cannot be half-closed: do not wait for a response.
                self.close()
                return "rejected"
            async with asyncio.timeout(_RESPONSE_WITHIN_S):
                await self._response(reader)
        except (OSError, EOFError) as end:
            self.close()
            return "silent" if isinstance(end, TimeoutError) else "rejected"
        if frame.has_wrong_length:
            self.close()
        return "decoded"

    def close(self) -> None:
        if self._writer is not None:
            self._writer.close()
        self._reader = self._writer = None


def _listeners(target: Target) -> dict[str, ssl.SSLContext | None]:
    return {
        **dict.fromkeys(PLAINTEXT, None),
        "SECURE": target.tls,
        "MUTUAL": target.mutual,
    }


async def _worker(
    target: Target, listener: str, broker: int, frames: Iterator[Frame], mutated: FrameOutcomes
) -> None:
    logs_in = listener in ("SECURE", "INTERNAL")
    tls = _listeners(target)[listener]
    connection = _Connection(target.address(listener, broker), tls, logs_in=logs_in)
    for frame in frames:
        try:
            outcome = await connection.send(frame)
        except (OSError, EOFError):
            connection.close()
            mutated.unsent[listener] += 1
            continue
        getattr(mutated, outcome)[listener] += 1
    connection.close()


class _Stream:
    """A stream with the certificate of a broker that is not registered."""

    def __init__(self, target: Target) -> None:
        name = ("grpc.ssl_target_name_override", f"broker-{CONTROLLER}.bridgehead")
        pair = target.files.issue("broker", f"broker-{STRANGER}.bridgehead")
        address = target.ready(CONTROLLER)["grpc"]
        self._channel = grpc.aio.secure_channel(address, credentials(target, pair), [name])
        self._call: grpc.aio.StreamStreamCall[bytes, bytes] | None = None

    async def send(self, frame: Frame) -> str:
        """Send a batch. It was decoded if the controller then sends anything, even a heartbeat."""
        if self._call is None:
            self._call = await self._opened()
        try:
            await self._call.write(frame.data)
            async with asyncio.timeout(_RESPONSE_WITHIN_S):
                if await self._call.read() is not grpc.aio.EOF:  # type: ignore[attr-defined]
                    return "decoded"
        except (grpc.aio.AioRpcError, asyncio.InvalidStateError):
            pass
        except TimeoutError:
            return "silent"
        self._call = None
        return "rejected"

    async def _opened(self) -> grpc.aio.StreamStreamCall[bytes, bytes]:
        """Return a stream whose Hello was accepted. A busy controller may first wait too short."""
        tries_left = _OPENED_WITHIN_TRIES
        while True:
            call = self._channel.stream_stream(METHOD, None, None)(None)
            try:
                await call.write(hello(STRANGER, "life"))
                await call.read()
            except (grpc.aio.AioRpcError, asyncio.InvalidStateError):
                tries_left -= 1
                if not tries_left:
                    raise
            else:
                return call

    async def close(self) -> None:
        await self._channel.close(None)


class _Metrics:
    """The HTTP port, with a connection for each request."""

    def __init__(self, target: Target) -> None:
        self._host, _, self._port = target.metrics_address().rpartition(":")

    async def send(self, frame: Frame) -> str:
        reader, writer = await asyncio.open_connection(self._host, int(self._port))
        try:
            writer.write(frame.data)
            writer.write_eof()
            async with asyncio.timeout(_RESPONSE_WITHIN_S):
                response = await reader.read(1 << 24)
        except TimeoutError:
            return "silent"
        except OSError:
            return "rejected"
        finally:
            writer.close()
        return "decoded" if response.startswith(b"HTTP/1.1 200 ") else "rejected"

    async def close(self) -> None:
        """Do nothing: no connection stays open."""


async def _other_worker(
    name: str, sink: _Stream | _Metrics, frames: Iterator[Frame], mutated: FrameOutcomes
) -> None:
    for frame in frames:
        getattr(mutated, await sink.send(frame))[name] += 1
    await sink.close()


async def send_mutated_frames(target: Target, count: int, seed: int) -> FrameOutcomes:
    """Send `count` frames, distributed over the listeners and the two brokers."""
    mutated, workers = FrameOutcomes(), []
    for number, (listener, share) in enumerate(SHARES.items()):
        frames = Mutator(seed * 1000 + number).frames(count * share // 100)
        for index in range(max(2, _WORKERS * share // 100)):
            broker = BROKERS[index % len(BROKERS)]
            workers.append(_worker(target, listener, broker, frames, mutated))
    for name, sink, corpus in (
        (GRPC, _Stream(target), batches()),
        (METRICS, _Metrics(target), heads()),
    ):
        share = count * OTHER_SHARES[name] // 100
        mutator = Mutator(seed, corpus)
        frames = (mutator.unframed() for _ in range(share))
        workers.append(_other_worker(name, sink, frames, mutated))
    await asyncio.gather(*workers)
    return mutated
