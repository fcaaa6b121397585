"""The socket of one client: reads requests, executes them, writes responses in the same order.

Requests are executed one after another, except independent writes (`overlapping_writes`). TLS is
asyncio's own. The bare connection is admitted first and then upgraded, so a client that never
finishes its handshake counts against the limits like any other. The handshake has a time limit of
its own. The `SaslAuthenticator` handles logins, the `Dispatcher` all other requests.
"""

from __future__ import annotations

import asyncio
import contextlib
import fcntl
import logging
import ssl
import sys
import termios
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, Protocol, cast

from bridgehead.kafka_wire.framing import frame
from bridgehead.kafka_wire.headers import UnsupportedVersionError
from bridgehead.kafka_wire.primitives import WireError
from bridgehead.kafka_wire.schema import free_elements
from bridgehead.slices import is_large, sliced
from broker_proxy.authentication.authenticator import (
    Dispatch,
    Expired,
    Reject,
    SaslAuthenticator,
    SendResponse,
)
from broker_proxy.authentication.listener_security import Listener, LoginRequirements
from broker_proxy.client_request import ClientRequest, RequestProgress
from broker_proxy.connections.connection import ClientConnection, is_produce
from broker_proxy.connections.logins import Logins
from broker_proxy.connections.overlapping_writes import OverlappingWrites
from broker_proxy.connections.request_log import RequestLog
from broker_proxy.connections.request_memory import RequestMemory
from broker_proxy.requests.dispatch import Dispatcher
from cluster_model.client import Client
from event_log.writer import EventLog

_log = logging.getLogger(__name__)
# The broker begins no more requests of a client that leaves this many bytes of responses unread,
# except writes that overlap with one in progress.
WRITE_HIGH_WATER_BYTES: Final = 1024 * 1024
# Up to this many responses are joined into one write.
RESPONSES_JOINED_MAX: Final = 64
# Time limits of a TLS handshake and of the client's TLS shutdown.
HANDSHAKE_S: Final = 30.0
_TLS_SHUTDOWN_S: Final = 2.0
_NO_RESPONSE: Final = b""
# The largest frame until the login is complete. No mechanism here needs a larger one. The limit is
# low because two thousand unauthenticated clients may each send a frame. A lower
# sasl.server.max.receive.size takes precedence.
LOGIN_FRAME_BYTES_MAX: Final = 96 * 1024


@dataclass(frozen=True, slots=True)
class Limits:
    """Limits of one connection."""

    frame_bytes_max: int  # socket.request.max.bytes
    idle_ms_max: int  # connections.max.idle.ms
    login_frame_bytes_max: int = LOGIN_FRAME_BYTES_MAX
    failed_login_delay_ms: int = 100  # connection.failed.authentication.delay.ms
    handshake_s: float = HANDSHAKE_S


@dataclass(frozen=True, slots=True)
class ConnectionServices:
    """What all connections of a broker share."""

    dispatcher: Dispatcher
    logins: Logins
    limits: Limits
    log: EventLog
    request_log: RequestLog
    memory: RequestMemory[ClientSocket]
    now_s: Callable[[], float]
    now_ns: Callable[[], int]


class Connections(Protocol):
    """All connections of a broker. Each connection reports its changes here."""

    services: ConnectionServices

    def arrive(
        self, protocol: ClientSocket, transport: asyncio.Transport, listener: Listener
    ) -> None:
        """Queue a new connection for admission."""
        ...

    def authenticated(self, protocol: ClientSocket) -> None:
        """Record that a client met its listener's login requirements."""
        ...

    def memory_changed(self, protocol: ClientSocket, connection: ClientConnection) -> None:
        """Record that a connection's requests take more or less memory."""
        ...

    def dismiss(self, protocol: ClientSocket, connection: ClientConnection) -> None:
        """Unregister a closed connection."""
        ...


class ClientSocket(asyncio.Protocol):
    """One connection. `last_active_s` is the time of its last activity."""

    def __init__(
        self, connections: Connections, listener: Listener, requirements: LoginRequirements
    ) -> None:
        self._connections = connections
        self._services = connections.services
        self._listener = listener
        self._requirements = requirements
        self._transport: asyncio.Transport | None = None
        self._connection: ClientConnection | None = None
        self._writes: OverlappingWrites | None = None
        self._login: SaslAuthenticator | None = None
        self._task: asyncio.Task[None] | None = None
        self._handshake: asyncio.Task[None] | None = None
        self._early: list[bytes] = []  # decrypted data that arrived before `start_tls` returned
        self._completed: list[ClientRequest] = []  # their responses are not written yet
        self._large: list[RequestProgress] = []  # of large requests whose responses are written
        self._writable = asyncio.Event()
        self._writable.set()
        self._is_finishing = False
        self._ended = asyncio.Event()  # ends a throttle
        self._is_dismissed = False
        self._is_lost = False
        self.last_active_s = 0.0

    # --- Beginning -----------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Queue for admission."""
        self._transport = cast(asyncio.Transport, transport)
        self.last_active_s = self._services.now_s()
        self._connections.arrive(self, self._transport, self._listener)

    def begin(self, connection: ClientConnection) -> None:
        """Start to serve an admitted connection; on a TLS listener, do the handshake first."""
        assert self._transport is not None
        self.last_active_s = self._services.now_s()
        self._connection = connection
        self._writes = OverlappingWrites(
            self._services.dispatcher, connection, self._is_session_valid, self._services.now_ns
        )
        if self._requirements.tls is not None:
            self._handshake = asyncio.create_task(self._upgrade_to_tls(connection, self._transport))
        else:
            self._begin(connection, self._transport, None)

    @property
    def client(self) -> Client | None:
        """The client; None before it is admitted."""
        return self._connection.info.client if self._connection is not None else None

    @property
    def connection_id(self) -> str:
        """The id of an admitted connection."""
        return self._connection.info.connection_id if self._connection is not None else ""

    async def _upgrade_to_tls(self, connection: ClientConnection, bare: asyncio.Transport) -> None:
        transport, reason = None, ""
        try:
            assert self._requirements.tls is not None
            transport = await asyncio.get_running_loop().start_tls(
                bare,
                self,
                self._requirements.tls,
                server_side=True,
                ssl_handshake_timeout=self._services.limits.handshake_s,
                ssl_shutdown_timeout=_TLS_SHUTDOWN_S,
            )
        except ssl.SSLError as error:
            reason = f"the TLS handshake failed: {error.reason or type(error).__name__}"
        except ConnectionAbortedError:  # asyncio's error for a handshake timeout
            reason = "the client did not finish the TLS handshake in time"
        except OSError:
            reason = "the client disconnected during the TLS handshake"
        finally:
            self._handshake = None
            if transport is None:
                bare.abort()
                self._services.logins.failed(
                    connection.info, None, reason or "the TLS handshake was cancelled"
                )
                self._dismiss()
        if transport is not None:
            self._begin(connection, transport, _certificate(transport))

    def _begin(
        self,
        connection: ClientConnection,
        transport: asyncio.Transport,
        certificate: bytes | None,
    ) -> None:
        """Set the principal or start a login; then process the data that has already arrived."""
        self._transport = transport
        transport.set_write_buffer_limits(high=WRITE_HIGH_WATER_BYTES)
        try:
            self._login = self._services.logins.identify(
                connection.info, self._requirements, certificate
            )
        except Exception as error:  # Custom principal builders may raise anything.
            _log.info("%s: %s", connection.info.connection_id, error)
            self._services.logins.failed(connection.info, None, "the principal builder failed")
            self.abort()
            return
        if self._login is None:
            self._connections.authenticated(self)
        else:
            connection.frame_bytes_max = self._services.limits.login_frame_bytes_max
        early, self._early = self._early, []
        for data in early:
            self.data_received(data)

    # --- Reading -------------------------------------------------------------------------

    def data_received(self, data: bytes) -> None:
        """Queue complete frames for execution."""
        connection, transport = self._connection, self._transport
        if connection is None or transport is None or transport.is_closing():
            return
        self.last_active_s = self._services.now_s()
        if self._handshake is not None:
            self._early.append(data)
            return
        connection.receive_data(data)
        self._connections.memory_changed(self, connection)
        if not self._may_read(connection):
            transport.pause_reading()
        if self._task is None:
            self._task = asyncio.create_task(self._work(connection, transport))
        elif self._writes is not None:
            self._writes.start_more()

    def _may_read(self, connection: ClientConnection) -> bool:
        return not connection.is_full and self._services.memory.may_read(self)

    def read_on(self) -> None:
        """Continue to read from the client if its requests may take more memory."""
        connection, transport = self._connection, self._transport
        if connection is None or transport is None or transport.is_closing():
            return
        if not self._is_finishing and self._may_read(connection):
            transport.resume_reading()

    async def _work(self, connection: ClientConnection, transport: asyncio.Transport) -> None:
        """Execute queued requests; join the responses into fewer writes."""
        services = self._services
        responses: list[bytes] = []
        try:
            while (data := connection.next_frame()) is not None:
                # A producer with acks=0 may disconnect at once: its queued records are stored, too.
                if transport.is_closing() and not is_produce(data):
                    break
                result, throttle_ms = await self._respond(connection, data, responses)
                if result == _NO_RESPONSE:
                    await self._continue_without_response(connection, transport, throttle_ms)
                    continue
                if result is None:
                    self._write(responses, transport)
                    self.close()
                    return
                responses.append(frame(result))
                if throttle_ms or len(responses) >= RESPONSES_JOINED_MAX or connection.is_drained:
                    self._write(responses, transport)
                    await self._free_large()
                    await self._writable.wait()
                    if throttle_ms > 0:
                        await self._mute(throttle_ms)
                    self.last_active_s = services.now_s()
                    if not connection.is_drained:
                        self._connections.memory_changed(self, connection)
                        await asyncio.sleep(0)  # Lets other connections run.
                self.read_on()
            if connection.broken is not None:
                _log.info("%s: %s", connection.info.connection_id, connection.broken)
                if self._login is not None and not self._login.is_complete:
                    services.logins.failed(connection.info, self._login, str(connection.broken))
                self.close()
        except Exception:
            _log.exception(
                "%s: an unexpected error closes the connection", connection.info.connection_id
            )
            self.close()
        finally:
            if self._writes is not None:
                await self._writes.finish()
            self._task = None
            connection.end_execution()
            self._connections.memory_changed(self, connection)
            if transport.is_closing() and self._is_lost:
                self._dismiss()
            self.read_on()
            with contextlib.suppress(OSError):  # The node flushes again, and reports the error.
                services.log.flush()

    async def _continue_without_response(
        self, connection: ClientConnection, transport: asyncio.Transport, throttle_ms: int
    ) -> None:
        self._write([], transport)  # Only writes the request's line to the request log.
        await self._free_large()
        if throttle_ms > 0:
            await self._mute(throttle_ms)
        self.last_active_s = self._services.now_s()
        if not connection.is_drained:
            self._connections.memory_changed(self, connection)
            await asyncio.sleep(0)  # Lets other connections run.
        self.read_on()

    def _write(self, responses: list[bytes], transport: asyncio.Transport) -> None:
        began_ns = self._services.now_ns()
        if responses and not transport.is_closing():
            # The evidence reaches the operating system before the response does.
            self._services.log.flush()
            transport.write(b"".join(responses))
        responses.clear()
        self._services.request_log.completed(self._completed, began_ns)
        self._large += [done.progress for done in self._completed if is_large(done.body)]
        self._completed.clear()

    async def _free_large(self) -> None:
        """Free the messages of large requests in slices."""
        while self._large:
            progress = self._large.pop()
            for message in (progress.message, progress.response):
                if message is not None and not isinstance(message, bytes):
                    async for _ in sliced(free_elements(message)):
                        pass

    async def _respond(
        self, connection: ClientConnection, data: bytes, ready: list[bytes]
    ) -> tuple[bytes | None, int]:
        """Return the response (None: close) and how many milliseconds to throttle after it.

        If the response is `_NO_RESPONSE`, the connection stays open, and nothing is sent.
        """
        if self._login is None:
            return await self._execute(connection, data, ready)
        renewed = self._login.principal is not None
        match self._login.receive(data, self._services.now_ns() // 1_000_000):
            case Dispatch():
                return await self._execute(connection, data, ready)
            case SendResponse(payload, logged_in):
                if logged_in:
                    self._services.logins.logged_in(connection.info, self._login, renewed=renewed)
                    connection.frame_bytes_max = self._services.limits.frame_bytes_max
                    self._connections.authenticated(self)
                return payload, 0
            case Reject(payload, reason):
                assert self._transport is not None
                self._write(ready, self._transport)
                self._transport.pause_reading()
                self._services.logins.failed(connection.info, self._login, reason)
                await self._mute(self._services.limits.failed_login_delay_ms)
                if payload is not None:
                    ready.append(frame(payload))
            case Expired():
                self._services.logins.expired(connection.info)
        return None, 0

    async def _execute(
        self, connection: ClientConnection, data: bytes, ready: list[bytes]
    ) -> tuple[bytes | None, int]:
        services = self._services
        writes = self._writes
        assert writes is not None
        try:
            has_response, request = writes.has_response(), writes.open(data)
        except UnsupportedVersionError as error:
            request = connection.name_request(error.header, data, len(data), services.now_ns())
            self._completed.append(request)
            return services.dispatcher.handle_unsupported(request), 0
        except WireError as error:
            _log.info("%s: %s", connection.info.connection_id, error)
            return None, 0
        if ready and not has_response and services.dispatcher.may_take_long(request):
            assert self._transport is not None
            self._write(ready, self._transport)
        response = await writes.handle(request)
        if request.progress.never_gets_response:  # stays open until the idle timeout
            idle_ms = services.limits.idle_ms_max
            await (self._mute(idle_ms) if idle_ms >= 0 else self._ended.wait())
        self._completed.append(request)
        if request.progress.needs_no_response:
            return _NO_RESPONSE, request.progress.throttle_ms
        return response, request.progress.throttle_ms

    def _is_session_valid(self) -> bool:
        return self._login is None or self._login.is_valid(self._services.now_ns() // 1_000_000)

    async def _mute(self, throttle_ms: int) -> None:
        """Serve nothing for `throttle_ms`; end early if the client leaves or the server stops."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(throttle_ms / 1000):
                await self._ended.wait()

    # --- Ending --------------------------------------------------------------------------

    def pause_writing(self) -> None:
        """The client does not read its responses: begin no request, except overlapping writes."""
        self._writable.clear()

    def resume_writing(self) -> None:
        """Continue executing."""
        self._writable.set()

    def connection_lost(self, exc: Exception | None) -> None:
        """Clean up after a disconnect."""
        self._writable.set()
        self._ended.set()
        self._is_lost = True
        connection = self._connection
        if self._task is not None and connection is not None and connection.has_produce:
            return  # `_work` dismisses the connection after its last Produce.
        if self._handshake is None or self._handshake.done():
            self._dismiss()

    def _dismiss(self) -> None:
        if self._connection is not None and not self._is_dismissed:
            self._is_dismissed = True
            self._connection.drop_frames()
            self._connections.memory_changed(self, self._connection)
            self._connections.dismiss(self, self._connection)

    @property
    def is_idle(self) -> bool:
        """True while no request is executing."""
        return self._task is None

    @property
    def is_closing(self) -> bool:
        """True once the connection is closing."""
        return self._transport is None or self._transport.is_closing()

    def unread_bytes(self) -> int:
        """Return how many bytes have arrived that the broker has not read yet."""
        if self._transport is None or self._transport.is_closing():
            return 0
        count = bytearray(4)
        fcntl.ioctl(self._transport.get_extra_info("socket").fileno(), termios.FIONREAD, count)
        return int.from_bytes(count, sys.byteorder)

    @property
    def is_stuck(self) -> bool:
        """True while the client leaves too many bytes of responses unread."""
        return not self._writable.is_set()

    def finish(self) -> asyncio.Task[None] | None:
        """Stop reading; return the task of the requests that are still executing."""
        self._ended.set()
        if self._transport is not None and not self._transport.is_closing():
            self._transport.pause_reading()
            self._is_finishing = True
        return self._task

    def close(self) -> None:
        """Close after all written bytes have been sent."""
        if self._transport is not None:
            self._transport.close()

    def evict(self) -> None:
        """Close this connection, because too many clients are unauthenticated."""
        if self._connection is not None and self._handshake is None:
            reason = "too many clients are not authenticated yet"
            self._services.logins.failed(self._connection.info, self._login, reason)
        self.abort()

    def give_up_frame(self) -> None:
        """Close the connection in the middle of a frame, to free the frame's memory."""
        if self._connection is not None:
            self._connection.drop_frames()
        self.abort()

    def abort(self) -> None:
        """Close immediately; written bytes may be lost."""
        if self._handshake is not None:
            self._handshake.cancel()
        if self._transport is not None:
            self._transport.abort()


def _certificate(transport: asyncio.BaseTransport) -> bytes | None:
    """Return the client's verified TLS certificate, if it sent one."""
    tls: ssl.SSLObject = transport.get_extra_info("ssl_object")
    return tls.getpeercert(binary_form=True)
