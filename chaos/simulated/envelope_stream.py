"""The channel of Envelopes over the simulated network, in place of gRPC.

Both ends are the production code: `envelope.channel.ControllerChannel` and
`envelope.server.EnvelopeServicer`. Only the stream between them is simulated.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from types import MappingProxyType
from typing import Any, Final

import grpc
import grpc.aio

from chaos.simulated.network import LOOPBACK, SimulatedConnection, SimulatedNetwork
from chaos.simulated.virtual_time import Process, current_process
from envelope.messages import ApiRanges
from envelope.server import EnvelopeReceiver, EnvelopeServer, EnvelopeServicer

_END: Final = object()


class EnvelopeNetwork:
    """All channels of one simulation."""

    def __init__(self, network: SimulatedNetwork) -> None:
        self.network = network
        self._servers: dict[str, _Server] = {}

    async def serve(
        self,
        host: str,
        port: int,
        handler: EnvelopeReceiver,
        credentials: object = None,
        served: ApiRanges = MappingProxyType({}),
    ) -> EnvelopeServer:
        assert credentials is None, "the simulation has no TLS"
        port = port or self.network.new_port()
        process = current_process()
        assert process is not None
        address = f"{LOOPBACK}:{port}"
        server = self._servers[address] = _Server(
            EnvelopeServicer(handler, served, is_secure=False), process
        )
        server.servicer.address = address
        return _RunningServer(server, port)

    def connect(self, address: str, credentials: object, _server_name: str | None) -> _ClientStream:
        assert credentials is None, "the simulation has no TLS"
        return _ClientStream(self.network, self._servers.get(address), current_process())


class _Server:
    """A controller's end of all channels."""

    def __init__(self, servicer: EnvelopeServicer, process: Process) -> None:
        self.servicer = servicer
        self.process = process
        self.streams: dict[_ServerStream, None] = {}
        self.is_running = True


class _RunningServer(EnvelopeServer):
    """See EnvelopeServer."""

    def __init__(self, server: _Server, port: int) -> None:
        super().__init__(server, server.servicer, port)
        self._running = server

    async def stop(self) -> None:
        self._running.is_running = False
        for stream in tuple(self._running.streams):
            stream.cancel()


class _Context:
    """The part of a gRPC context that the servicer uses."""

    def __init__(self, peer: str) -> None:
        self._peer = peer

    def peer(self) -> str:
        """Return the peer as gRPC names it."""
        return self._peer

    async def abort(self, code: grpc.StatusCode, details: str) -> None:
        """End the stream."""
        raise _broken(code, details)

    def auth_context(self) -> Mapping[str, Any]:
        """Return nothing: there is no TLS."""
        return {}


class _Mailbox:
    """Messages that have arrived, as an asynchronous iterator."""

    def __init__(self) -> None:
        self._queue: asyncio.Queue[Any] = asyncio.Queue()

    def put(self, message: Any) -> None:
        """Add a message; `_END` and exceptions end the iteration."""
        self._queue.put_nowait(message)

    def __aiter__(self) -> _Mailbox:
        return self

    async def __anext__(self) -> Any:
        message = await self._queue.get()
        if message is _END:
            raise StopAsyncIteration
        if isinstance(message, BaseException):
            raise message
        return message


class _ServerStream:
    """One stream at the controller."""

    def __init__(
        self, server: _Server, connection: SimulatedConnection, client: _ClientStream
    ) -> None:
        self._server = server
        self._connection = connection
        self._client = client
        self._task: asyncio.Task[None] | None = None
        self.received = _Mailbox()

    def begin(self, peer: str) -> None:
        """Accept the stream."""
        if not self._server.is_running:
            self._connection.replies.send(self._client.end, self._connection)
            return
        self._server.streams[self] = None
        self._task = asyncio.get_running_loop().create_task(self._serve(peer))

    async def _serve(self, peer: str) -> None:
        replies = self._connection.replies
        try:
            responses = self._server.servicer.Channel(self.received, _Context(peer))
            async for batch in responses:
                self._connection.unfinished -= len(batch.replies)
                replies.send(self._client.received, self._connection, batch)
        except (grpc.aio.AioRpcError, asyncio.CancelledError):
            pass  # The stream ends in either case.
        finally:
            self._server.streams.pop(self, None)
            self._connection.close()
            replies.send(self._client.end, self._connection)

    def cancel(self) -> None:
        """End the stream: the broker closed it or is gone, or the connection broke."""
        if self._task is not None:
            self._task.cancel()


class _ClientStream:
    """A broker's end of a stream; see envelope.channel.Stream."""

    def __init__(
        self, network: SimulatedNetwork, server: _Server | None, process: Process | None
    ) -> None:
        self._network = network
        self._server = server
        self._process = process
        self._connection: SimulatedConnection | None = None
        self._remote: _ServerStream | None = None
        self._inbox = _Mailbox()
        self._writer: asyncio.Task[None] | None = None

    async def exchange(self, batches: AsyncIterator[Any]) -> AsyncIterator[Any]:
        server = self._server
        if server is None or server.process.has_ended or not server.is_running:
            await asyncio.sleep(0.001)
            raise _broken(grpc.StatusCode.UNAVAILABLE, "nothing listens at the address")
        service = f"envelopes of {server.process.name}"
        connection = self._connection = SimulatedConnection(
            self._network, service, self._process, server.process
        )
        remote = self._remote = _ServerStream(server, connection, self)
        connection.on_client_reset = lambda: self.end(connection)
        connection.on_server_reset = remote.cancel
        connection.requests.send(remote.begin, f"ipv4:{LOOPBACK}:{self._network.new_port()}")
        self._writer = asyncio.create_task(self._write(batches, connection, remote))
        async for batch in self._inbox:
            yield batch

    async def _write(
        self, batches: AsyncIterator[Any], connection: SimulatedConnection, remote: _ServerStream
    ) -> None:
        async for batch in batches:
            connection.unfinished += len(batch.envelopes)
            connection.requests.send(remote.received.put, batch)

    def received(self, _connection: SimulatedConnection, batch: Any) -> None:
        """A batch arrived."""
        self._inbox.put(batch)

    def end(self, _connection: SimulatedConnection) -> None:
        """End the stream: the controller closed it or is gone, or the connection broke."""
        self._inbox.put(_broken(grpc.StatusCode.UNAVAILABLE, "the stream was closed"))

    async def close(self) -> None:
        if self._writer is not None:
            self._writer.cancel()
        connection, self._connection = self._connection, None
        if connection is not None and self._remote is not None:
            connection.close()
            connection.requests.send(self._remote.cancel)


def _broken(code: grpc.StatusCode, details: str) -> grpc.aio.AioRpcError:
    empty = grpc.aio.Metadata()
    return grpc.aio.AioRpcError(code, empty, empty, details, None)
