"""The sockets: Kafka listeners and their connections.

A client that is slow, silent or hostile costs its own buffers and nothing else: frames are capped
before they are buffered, reading stops while answers pile up unread, and an idle connection is
closed after `connections.max.idle.ms`.
"""

from __future__ import annotations

import asyncio
import contextlib
import ipaddress
import itertools
import logging
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final, cast

from bridgehead.kafka_wire.framing import frame
from bridgehead.kafka_wire.headers import UnsupportedVersionError
from bridgehead.kafka_wire.primitives import WireError
from broker_proxy.apis.base import ClientConnectionInfo
from broker_proxy.connection import ClientConnection
from broker_proxy.dispatch import Dispatcher
from cluster_model.principal import ANONYMOUS
from event_log.events import Connected, Disconnected
from event_log.writer import EventLog

_log = logging.getLogger(__name__)
# Answers that a client does not read: beyond this nothing more is read from it.
WRITE_HIGH_WATER_BYTES: Final = 1024 * 1024
# Answers of one read go out in one write.
ANSWERS_JOINED_MAX: Final = 64
# At the end: how long what was written may take to reach a client.
CLOSE_WITHIN_S: Final = 0.5
_BACKLOG: Final = 1024


@dataclass(frozen=True, slots=True)
class Listener:
    """One listener as configured. Port 0 takes a free one."""

    name: str
    security_protocol: str
    host: str
    port: int
    dialect: str = "shipped"


@dataclass(frozen=True, slots=True)
class Limits:
    """What a connection may cost."""

    frame_bytes_max: int  # socket.request.max.bytes
    idle_ms_max: int  # connections.max.idle.ms
    connections_max: int = 2**31 - 1  # max.connections: one more is closed at once


class _ClientProtocol(asyncio.Protocol):
    """One connection's socket. All meaning is in ClientConnection and Dispatcher."""

    def __init__(self, server: KafkaServer, listener: Listener) -> None:
        self._server = server
        self._listener = listener
        self._transport: asyncio.Transport | None = None
        self._connection: ClientConnection | None = None
        self._task: asyncio.Task[None] | None = None
        self._writable = asyncio.Event()
        self._writable.set()
        self._is_finishing = False
        self._ended = asyncio.Event()  # no muting any more
        self.last_active_s = 0.0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        self._transport.set_write_buffer_limits(high=WRITE_HIGH_WATER_BYTES)
        self._connection = self._server.admit(self, self._transport, self._listener)
        self.last_active_s = self._server.now_s()

    def data_received(self, data: bytes) -> None:
        connection, transport = self._connection, self._transport
        if connection is None or transport is None or transport.is_closing():
            return
        self.last_active_s = self._server.now_s()
        connection.receive_data(data)
        if connection.is_full:
            transport.pause_reading()
        if self._task is None:
            self._task = asyncio.create_task(self._work(connection, transport))

    async def _work(self, connection: ClientConnection, transport: asyncio.Transport) -> None:
        """Execute what is queued, one request after another; join answers that are ready."""
        server = self._server
        answers: list[bytes] = []
        try:
            while (data := connection.next_frame()) is not None and not transport.is_closing():
                result, throttle_ms = await self._answer(connection, data, answers)
                if result is None:
                    self._write(answers, transport)
                    self.close()
                    return
                answers.append(frame(result))
                if throttle_ms or len(answers) >= ANSWERS_JOINED_MAX or connection.is_drained:
                    self._write(answers, transport)
                    await self._writable.wait()
                    if throttle_ms > 0:
                        await self._be_mute(throttle_ms)
                    self.last_active_s = server.now_s()
                    if not connection.is_drained:
                        await asyncio.sleep(0)  # Other connections have their turn.
                if not (connection.is_full or self._is_finishing or transport.is_closing()):
                    transport.resume_reading()
            if connection.broken is not None:
                _log.info("%s: %s", connection.info.connection_id, connection.broken)
                self.close()
        except Exception:
            _log.exception("%s: a fault closes the connection", connection.info.connection_id)
            self.close()
        finally:
            self._task = None
            server.flush_events()

    def _write(self, answers: list[bytes], transport: asyncio.Transport) -> None:
        if answers and not transport.is_closing():
            # The evidence reaches the operating system before the answer it speaks of.
            self._server.flush_events()
            transport.write(b"".join(answers))
        answers.clear()

    async def _answer(
        self, connection: ClientConnection, data: bytes, ready: list[bytes]
    ) -> tuple[bytes | None, int]:
        """Return the answer (None: close), and for how many milliseconds to be mute after it."""
        server = self._server
        try:
            request = connection.open_request(data, server.now_ns())
        except UnsupportedVersionError as refused:
            request = connection.name_request(refused.header, data, len(data), server.now_ns())
            return server.dispatcher.answer_unsupported(request), 0
        except WireError as wrong:
            _log.info("%s: %s", connection.info.connection_id, wrong)
            return None, 0
        if ready and server.dispatcher.may_take_long(request):
            assert self._transport is not None
            self._write(ready, self._transport)
        return await server.dispatcher.answer(request), request.course.throttle_ms

    async def _be_mute(self, throttle_ms: int) -> None:
        """Serve nothing for so long, or until the client is gone or the server stops (KIP-219)."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(throttle_ms / 1000):
                await self._ended.wait()

    def pause_writing(self) -> None:
        self._writable.clear()

    def resume_writing(self) -> None:
        self._writable.set()

    def connection_lost(self, exc: Exception | None) -> None:
        self._writable.set()
        self._ended.set()
        if self._connection is not None:
            self._server.dismiss(self, self._connection)

    @property
    def is_idle(self) -> bool:
        """True while no request of this connection is executed."""
        return self._task is None

    @property
    def is_stuck(self) -> bool:
        """True while the client does not read its answers."""
        return not self._writable.is_set()

    def finish(self) -> asyncio.Task[None] | None:
        """Read no more; return what is still to be done for this client."""
        self._ended.set()
        if self._transport is not None and not self._transport.is_closing():
            self._transport.pause_reading()
            self._is_finishing = True
        return self._task

    def close(self) -> None:
        """Send what was written, then close."""
        if self._transport is not None:
            self._transport.close()

    def abort(self) -> None:
        """Close at once: nobody reads what was written."""
        if self._transport is not None:
            self._transport.abort()


class KafkaServer:
    """All listeners of one broker."""

    def __init__(
        self,
        *,
        dispatcher: Dispatcher,
        limits: Limits,
        request_prefix: str,
        log: EventLog,
        now_s: Callable[[], float],
        now_ns: Callable[[], int],
    ) -> None:
        self.dispatcher = dispatcher
        self._limits = limits
        self._prefix = request_prefix
        self._log = log
        self.now_s = now_s
        self.now_ns = now_ns
        self._counter = itertools.count(1)
        self._servers: list[asyncio.Server] = []
        self._protocols: set[_ClientProtocol] = set()
        self._dismissed = asyncio.Event()
        self._idle_timer: asyncio.TimerHandle | None = None

    async def bind(self, listener: Listener) -> Listener:
        """Take the listener's port, serve nothing yet; return it with the port it got.

        Raises:
            OSError: the port is taken or the address is not ours.
        """
        server = await asyncio.get_running_loop().create_server(
            lambda: _ClientProtocol(self, listener),
            listener.host,
            listener.port,
            backlog=_BACKLOG,
            start_serving=False,
        )
        self._servers.append(server)
        port = server.sockets[0].getsockname()[1]
        return Listener(
            listener.name, listener.security_protocol, listener.host, port, listener.dialect
        )

    async def serve(self) -> None:
        """Accept clients on every bound listener."""
        for server in self._servers:
            await server.start_serving()
        self._close_idle()

    async def stop(self, grace_s: float) -> None:
        """Accept no more, let running requests end within `grace_s`, close everything."""
        if self._idle_timer is not None:
            self._idle_timer.cancel()
        for server in self._servers:
            server.close()
        running = [task for p in self._protocols if (task := p.finish()) is not None]
        if running:
            await asyncio.wait(running, timeout=grace_s)
        for protocol in tuple(self._protocols):
            protocol.close()
        try:
            async with asyncio.timeout(CLOSE_WITHIN_S):
                while self._protocols:
                    self._dismissed.clear()
                    await self._dismissed.wait()
        except TimeoutError:
            for protocol in tuple(self._protocols):
                protocol.abort()

    @property
    def connection_count(self) -> int:
        """Clients connected now."""
        return len(self._protocols)

    def admit(
        self, protocol: _ClientProtocol, transport: asyncio.Transport, listener: Listener
    ) -> ClientConnection | None:
        """Name a new connection; None: it is gone already, or one too many."""
        local, remote = transport.get_extra_info("sockname"), transport.get_extra_info("peername")
        if remote is None or len(self._protocols) >= self._limits.connections_max:
            transport.abort()
            return None
        number = next(self._counter)
        self._protocols.add(protocol)
        address = ipaddress.ip_address(remote[0].split("%")[0])
        info = ClientConnectionInfo(
            connection_id=f"{local[0]}:{local[1]}-{remote[0]}:{remote[1]}-{number}",
            listener_name=listener.name,
            security_protocol=listener.security_protocol,
            dialect=listener.dialect,
            client_host=_host_text(address),
            client_address=address.packed,
            principal=ANONYMOUS,
        )
        self._log.append(
            Connected(
                connection=info.connection_id,
                listener=info.listener_name,
                security_protocol=info.security_protocol,
                client_host=info.client_host,
                principal=str(info.principal),
            )
        )
        return ClientConnection(
            info,
            request_prefix=f"{self._prefix}.{number}",
            frame_bytes_max=self._limits.frame_bytes_max,
        )

    def dismiss(self, protocol: _ClientProtocol, connection: ClientConnection) -> None:
        """A connection is gone."""
        self._protocols.discard(protocol)
        self._dismissed.set()
        self._log.append(Disconnected(connection=connection.info.connection_id))

    def flush_events(self) -> None:
        """Hand the evidence to the operating system."""
        self._log.flush()

    def _close_idle(self) -> None:
        limit_s = self._limits.idle_ms_max / 1000
        oldest = self.now_s() - limit_s
        for protocol in tuple(self._protocols):
            if protocol.last_active_s < oldest and (protocol.is_idle or protocol.is_stuck):
                protocol.abort()
        self._idle_timer = asyncio.get_running_loop().call_later(
            min(max(limit_s / 4, 0.1), 30.0), self._close_idle
        )


def _host_text(address: Any) -> str:
    """Return an address as Java's getHostAddress writes it."""
    if address.version == 4:
        return str(address)
    return ":".join(f"{int(group, 16):x}" for group in address.exploded.split(":"))
