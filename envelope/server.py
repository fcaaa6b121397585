"""The controller's end of all channels: one gRPC stream per broker."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator
from types import MappingProxyType
from typing import Any, Final, Protocol
from urllib.parse import unquote
from weakref import WeakSet

import grpc
import grpc.aio
from google.protobuf.message import DecodeError

from bridgehead.kafka_wire.errors import ErrorCode
from cluster_model.principal import KafkaPrincipal
from envelope._pb import envelope_pb2 as pb
from envelope._pb.envelope_pb2_grpc import ControllerServicer, add_ControllerServicer_to_server
from envelope.channel_security import PeerIdentity, identify
from envelope.conversion import (
    MalformedMessageError,
    envelope_from_pb,
    hello_from_pb,
    ranges_to_pb,
    reply_to_pb,
    update_to_pb,
)
from envelope.messages import ApiRanges, Envelope, EnvelopeReply, Hello, MetadataUpdate
from envelope.stream import CHANNEL_OPTIONS, SILENCE_MAX_S, Outbox, SilenceAlarm

_log = logging.getLogger(__name__)
# Protects the controller from a faulty broker. At the limit, nothing is read from the broker's
# stream until a request finishes.
IN_FLIGHT_PER_PEER_MAX: Final = 20_000
# gRPC cancels the streams of a stopped server, so they end at once unless one ignores this.
STREAMS_END_WITHIN_S: Final = 2.0


class BrokerPeer:
    """The broker at the other end of a stream."""

    def __init__(
        self, hello: Hello, principal: KafkaPrincipal, host: str, connection_id: str
    ) -> None:
        self.hello = hello
        self.principal = principal
        self.host = host  # the broker's address as text
        self.connection_id = connection_id
        self.outbox = Outbox()
        self.slots = asyncio.Semaphore(IN_FLIGHT_PER_PEER_MAX)

    def push(self, update: MetadataUpdate, delay_s: float = 0.0) -> None:
        """Queue a metadata update. Updates and replies are sent in the order of the calls.

        With `delay_s`, the update waits at most that long for others to be sent with it.
        """
        self.outbox.put(update, len(update.update_metadata) + 50, delay_s)

    def respond(self, sequence: int, reply: EnvelopeReply) -> None:
        """Queue a reply."""
        self.outbox.put((sequence, reply), len(reply.response_data or b"") + 50)


class EnvelopeReceiver(Protocol):
    """Handles Envelopes, whether the controller is active or not."""

    async def handle(self, envelope: Envelope, sender: BrokerPeer) -> EnvelopeReply:
        """Handle one Envelope in its own task, which continues if the stream ends."""

    def connected(self, peer: BrokerPeer) -> None:
        """A broker opened a stream. An older stream of the same broker may still be open."""

    def disconnected(self, peer: BrokerPeer) -> None:
        """A stream was closed. This is called once for each call of `connected`."""

    def rejected(self, hello: Hello, principal: KafkaPrincipal | None, reason: str) -> None:
        """A stream was rejected. `principal` is None if the certificate names no broker."""

    def batch_received(self, peer: BrokerPeer, lowest_unfinished: int, applied_zxid: int) -> None:
        """A BrokerBatch arrived, with the broker's lowest unfinished request and applied zxid."""


class EnvelopeServicer(ControllerServicer):
    """Serves the streams of all brokers."""

    def __init__(self, handler: EnvelopeReceiver, served: ApiRanges, *, is_secure: bool) -> None:
        self._handler = handler
        self._is_secure = is_secure
        self._served = served
        self._count = 0
        self.address = ""  # the server's address, once it is bound
        # Weak, because the event loop keeps each task until it has ended.
        self._streams: WeakSet[asyncio.Task[Any]] = WeakSet()
        # A task continues if its stream ends: a resend with the same identity gets the result.
        self._tasks: set[asyncio.Task[None]] = set()

    async def Channel(  # noqa: N802  # the method's name in the .proto
        self, request_iterator: AsyncIterator[Any], context: Any
    ) -> AsyncIterator[Any]:
        """Serve one stream until the broker closes it or is silent."""
        stream = asyncio.current_task()
        assert stream is not None
        self._streams.add(stream)
        hello = await _first_hello(request_iterator)
        if hello is None:
            await context.abort(grpc.StatusCode.INVALID_ARGUMENT, "a channel begins with Hello")
            return
        # Without TLS every broker is anonymous.
        identity = identify(context.auth_context()) if self._is_secure else PeerIdentity()
        if identity is None or not identity.may_be(hello.broker_id):
            reason = f"its certificate does not name broker {hello.broker_id}"
            self._handler.rejected(hello, identity.principal if identity else None, reason)
            await context.abort(grpc.StatusCode.PERMISSION_DENIED, reason)
            return
        self._count += 1
        connection_id = f"{self.address}-{_address(context.peer())}-{self._count}"
        peer = BrokerPeer(hello, identity.principal, _host_of(context.peer()), connection_id)
        # The stream is cancelled, because it may be blocked by a write to a broker that is frozen.
        alarm = SilenceAlarm(lambda: stream.cancel("the broker is silent"))
        reader = asyncio.create_task(self._read(request_iterator, peer, alarm))
        reader.add_done_callback(lambda _: peer.outbox.wake())
        # `_ended` is a callback: a generator that is cancelled in `yield` runs no `finally`.
        stream.add_done_callback(lambda _: self._ended(peer, reader, alarm))
        self._handler.connected(peer)
        yield pb.ControllerBatch(welcome=ranges_to_pb(self._served), heartbeat=True)
        while not reader.done():
            ready = await peer.outbox.wait()
            yield _batch(peer.outbox.take(), heartbeat=not ready)

    async def ended(self, within_s: float) -> None:
        """Wait until every stream has ended.

        Streams that are open after `within_s` are cancelled. Those that are open after the same
        time again are left to the event loop.
        """
        open_streams = {stream for stream in self._streams if not stream.done()}
        for cancels in (True, False):
            if not open_streams:
                return
            _, open_streams = await asyncio.wait(open_streams, timeout=within_s)
            for stream in open_streams if cancels else ():
                stream.cancel("the controller stops")
        if open_streams:
            _log.warning("channels still open although they were cancelled: %d", len(open_streams))

    def _ended(self, peer: BrokerPeer, reader: asyncio.Task[None], alarm: SilenceAlarm) -> None:
        alarm.stop()
        reader.cancel()
        self._handler.disconnected(peer)
        _log.info("the channel of broker %s ended", peer.hello.broker_id)

    async def _read(
        self, batches: AsyncIterator[Any], peer: BrokerPeer, alarm: SilenceAlarm
    ) -> None:
        try:
            async for batch in batches:
                alarm.message_received()
                self._handler.batch_received(
                    peer, batch.lowest_unfinished_sequence, batch.applied_zxid
                )
                for message in batch.envelopes:
                    if peer.slots.locked():
                        with alarm.suspended():
                            await peer.slots.acquire()
                    else:
                        await peer.slots.acquire()
                    task = asyncio.create_task(self._work(envelope_from_pb(message), peer))
                    self._tasks.add(task)
                    task.add_done_callback(self._tasks.discard)
        except grpc.aio.AioRpcError as broken:
            _log.info("the channel of broker %s broke: %s", peer.hello.broker_id, broken)
        except (DecodeError, MalformedMessageError):
            broker_id = peer.hello.broker_id
            _log.warning("closing the channel of broker %s: it sent a malformed message", broker_id)
        except Exception:
            _log.exception("closing the channel of broker %s after an error", peer.hello.broker_id)

    async def _work(self, envelope: Envelope, peer: BrokerPeer) -> None:
        try:
            reply = await self._handler.handle(envelope, peer)
        except Exception:
            # The outcome is unknown: the broker returns the error to its client and does not
            # resend.
            _log.exception("handling %s failed unexpectedly", envelope.request_id)
            reply = EnvelopeReply(int(ErrorCode.UNKNOWN_SERVER_ERROR), None, 0)
        finally:
            peer.slots.release()
        peer.respond(envelope.identity.sequence, reply)


def _address(peer: str) -> str:
    """Return host and port of gRPC's `ipv4:127.0.0.1:4711` or `ipv6:%5B::1%5D:4711`."""
    return unquote(peer.partition(":")[2])


async def _first_hello(batches: AsyncIterator[Any]) -> Hello | None:
    """Return the first message; None if it is not a Hello or does not arrive in time."""
    try:
        async with asyncio.timeout(SILENCE_MAX_S):
            first = await anext(batches, None)
        if first is None or not first.HasField("hello"):
            return None
        return hello_from_pb(first.hello)
    except (TimeoutError, DecodeError, MalformedMessageError):
        return None


def _host_of(peer: str) -> str:
    """Return the host in a gRPC peer name."""
    host, _, _ = _address(peer).rpartition(":")
    return host.strip("[]") or peer


def _batch(items: list[Any], *, heartbeat: bool) -> Any:
    batch = pb.ControllerBatch(heartbeat=heartbeat)
    for item in items:
        if isinstance(item, MetadataUpdate):
            update_to_pb(item, batch.updates.add())
        else:
            sequence, reply = item
            reply_to_pb(sequence, reply, batch.replies.add())
    return batch


class EnvelopeServer:
    """A running gRPC server."""

    def __init__(self, server: Any, servicer: EnvelopeServicer, port: int) -> None:
        self._server = server
        self._servicer = servicer
        self.port = port

    async def stop(self) -> None:
        """Close all streams and the port. Takes at most twice STREAMS_END_WITHIN_S."""
        await self._server.stop(grace=0)
        # gRPC has a task that waits for each stream, and does not wait for that task. If the event
        # loop ended before it, gRPC would print a traceback. It began to wait earlier than `ended`,
        # so it resumes earlier.
        await self._servicer.ended(STREAMS_END_WITHIN_S)


async def serve_envelopes(
    host: str,
    port: int,
    handler: EnvelopeReceiver,
    credentials: grpc.ServerCredentials | None = None,
    served: ApiRanges = MappingProxyType({}),
) -> EnvelopeServer:
    """Listen on `host:port` (0: a free port) and pass every Envelope to `handler`.

    `served` lists the controller's APIs and their versions.

    Raises:
        OSError: the port is in use.
    """
    server = grpc.aio.server(options=[*CHANNEL_OPTIONS, ("grpc.so_reuseport", 0)])
    servicer = EnvelopeServicer(handler, served, is_secure=credentials is not None)
    add_ControllerServicer_to_server(servicer, server)  # type: ignore[no-untyped-call]
    address = f"{host}:{port}"
    try:
        if credentials is None:
            bound = server.add_insecure_port(address)
        else:
            bound = server.add_secure_port(address, credentials)
    except RuntimeError as taken:
        raise OSError(f"cannot listen on {address}: {taken}") from None
    servicer.address = f"{host}:{bound}"
    await server.start()
    return EnvelopeServer(server, servicer, bound)
