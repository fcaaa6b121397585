"""The broker's end of a channel: sends Envelopes, receives replies and metadata updates."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Callable
from typing import Any, Protocol, cast

import grpc
import grpc.aio

from envelope._pb import envelope_pb2 as pb
from envelope._pb.envelope_pb2_grpc import ControllerStub
from envelope.conversion import (
    envelope_to_pb,
    hello_to_pb,
    ranges_from_pb,
    reply_from_pb,
    update_from_pb,
)
from envelope.messages import (
    ApiRanges,
    ChannelClosedError,
    Envelope,
    EnvelopeReply,
    Hello,
    MetadataUpdate,
)
from envelope.stream import BROKER_HEARTBEAT_EVERY_S, CHANNEL_OPTIONS, Outbox, SilenceAlarm

_log = logging.getLogger(__name__)


class Stream(Protocol):
    """A connection to one controller."""

    def exchange(self, batches: AsyncIterator[Any]) -> AsyncIterator[Any]:
        """Send these batches; yield the controller's batches.

        Raises:
            grpc.aio.AioRpcError: the connection broke.
        """

    async def close(self) -> None:
        """Close the connection."""


class GrpcStream:
    """A connection over gRPC."""

    def __init__(
        self, address: str, credentials: grpc.ChannelCredentials | None, server_name: str | None
    ) -> None:
        options: list[tuple[str, Any]] = list(CHANNEL_OPTIONS)
        if credentials is None:
            self._channel = grpc.aio.insecure_channel(address, options=options)
        else:
            if server_name is not None:
                options.append(("grpc.ssl_target_name_override", server_name))
            self._channel = grpc.aio.secure_channel(address, credentials, options=options)

    def exchange(self, batches: AsyncIterator[Any]) -> AsyncIterator[Any]:
        stub: Any = ControllerStub(self._channel)  # type: ignore[no-untyped-call]
        return cast(AsyncIterator[Any], stub.Channel(batches))

    async def close(self) -> None:
        await self._channel.close(None)


Connect = Callable[[str, grpc.ChannelCredentials | None, str | None], Stream]


class ControllerChannel:
    """One stream to one controller. If the stream breaks, it is not reopened.

    Many Envelopes may be in flight; replies come in any order. `on_closed` is called once, after
    all pending Envelopes have failed with ChannelClosedError. With `credentials`, the controller's
    certificate must name `server_name`.
    """

    def __init__(
        self,
        address: str,
        hello: Hello,
        *,
        on_update: Callable[[MetadataUpdate], None],
        on_closed: Callable[[], None],
        lowest_unfinished: Callable[[], int],
        applied_zxid: Callable[[], int],
        on_welcome: Callable[[ApiRanges], None] = lambda _ranges: None,
        credentials: grpc.ChannelCredentials | None = None,
        server_name: str | None = None,
        connect: Connect = GrpcStream,
    ) -> None:
        self._hello = hello
        self._on_update = on_update
        self._on_closed = on_closed
        self._lowest_unfinished = lowest_unfinished
        self._applied_zxid = applied_zxid
        self._on_welcome = on_welcome
        self._stream = connect(address, credentials, server_name)
        self._outbox = Outbox(BROKER_HEARTBEAT_EVERY_S)
        self._pending: dict[int, asyncio.Future[EnvelopeReply]] = {}
        self._closed = False
        self._task = asyncio.create_task(self._run(), name=f"channel to {address}")

    def send(self, envelope: Envelope) -> asyncio.Future[EnvelopeReply]:
        """Queue an Envelope; return a future that has its reply or raises ChannelClosedError."""
        future: asyncio.Future[EnvelopeReply] = asyncio.get_running_loop().create_future()
        if self._closed:
            future.set_exception(ChannelClosedError("the channel is closed"))
            return future
        self._pending[envelope.identity.sequence] = future
        self._outbox.put(envelope, len(envelope.request_data) + 200)
        return future

    def report(self) -> None:
        """Report the applied zxid now, without waiting for the next batch or heartbeat."""
        self._outbox.wake()

    async def close(self) -> None:
        """Close the stream. All pending Envelopes fail."""
        self._task.cancel("closed by its owner")
        await asyncio.gather(self._task, return_exceptions=True)
        if not self._closed:  # the task was cancelled before its first step
            self._fail_pending()
            await self._stream.close()

    async def _run(self) -> None:
        task = asyncio.current_task()
        assert task is not None
        alarm = SilenceAlarm(lambda: task.cancel("the controller is silent"))
        try:
            async for batch in self._stream.exchange(self._batches()):
                alarm.message_received()
                self._receive(batch)
        except grpc.aio.AioRpcError as broken:
            _log.info("the channel to the controller broke: %s", broken.code())
        except asyncio.CancelledError as cancelled:
            _log.info("the channel to the controller ends: %s", cancelled)
        except Exception:
            _log.exception("closing the channel to the controller after an unexpected error")
        finally:
            alarm.stop()
            self._fail_pending()
            await asyncio.shield(self._stream.close())

    def _receive(self, batch: Any) -> None:
        if batch.heartbeat:
            self._outbox.wake()
        if batch.HasField("welcome"):
            self._on_welcome(ranges_from_pb(batch.welcome))
        for message in batch.updates:
            self._on_update(update_from_pb(message))
        for message in batch.replies:
            future = self._pending.pop(message.sequence, None)
            if future is not None and not future.done():
                future.set_result(reply_from_pb(message))

    def _fail_pending(self) -> None:
        self._closed = True
        pending, self._pending = self._pending, {}
        for future in pending.values():
            if not future.done():
                future.set_exception(ChannelClosedError("the channel broke"))
        self._on_closed()

    async def _batches(self) -> AsyncIterator[Any]:
        yield pb.BrokerBatch(hello=hello_to_pb(self._hello))
        while True:
            ready = await self._outbox.wait()
            batch = pb.BrokerBatch(
                lowest_unfinished_sequence=self._lowest_unfinished(),
                heartbeat=not ready,
                applied_zxid=self._applied_zxid(),
            )
            for envelope in self._outbox.take():
                envelope_to_pb(envelope, batch.envelopes.add())
            yield batch
