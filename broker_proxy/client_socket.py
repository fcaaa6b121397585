"""One client's socket: bytes in, answers out. All meaning is elsewhere.

TLS is asyncio's own: the bare connection is admitted first and then upgraded, so that a client that
never finishes its handshake is counted, bounded and given up like any other. Logins are the
`SaslAuthenticator`'s; ordinary requests are the `Dispatcher`'s.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import ssl
from typing import TYPE_CHECKING, Final, cast

from bridgehead.kafka_wire.framing import frame
from bridgehead.kafka_wire.headers import UnsupportedVersionError
from bridgehead.kafka_wire.primitives import WireError
from broker_proxy.apis.base import ClientConnectionInfo, ClientRequest
from broker_proxy.authentication.authenticator import (
    Dispatch,
    Expired,
    Refuse,
    Reply,
    SaslAuthenticator,
)
from broker_proxy.connection import ClientConnection
from broker_proxy.logins import Gate, Listener

if TYPE_CHECKING:
    from broker_proxy.server import KafkaServer

_log = logging.getLogger(__name__)
# Answers that a client does not read: beyond this nothing more is read from it.
WRITE_HIGH_WATER_BYTES: Final = 1024 * 1024
# Answers of one read go out in one write.
ANSWERS_JOINED_MAX: Final = 64
# How long a client may take to say goodbye in TLS.
_TLS_GOODBYE_S: Final = 2.0


class ClientSocket(asyncio.Protocol):
    """One connection. `last_active_s` is when it last did something."""

    def __init__(self, server: KafkaServer, listener: Listener, gate: Gate) -> None:
        self._server = server
        self._listener = listener
        self._gate = gate
        self._transport: asyncio.Transport | None = None
        self._connection: ClientConnection | None = None
        self._login: SaslAuthenticator | None = None
        self._task: asyncio.Task[None] | None = None
        self._handshake: asyncio.Task[None] | None = None
        self._early: list[bytes] = []  # what came between the handshake's end and our hearing of it
        self._completed: list[ClientRequest] = []  # their answers are not written yet
        self._writable = asyncio.Event()
        self._writable.set()
        self._is_finishing = False
        self._ended = asyncio.Event()  # no muting any more
        self._is_dismissed = False
        self.last_active_s = 0.0

    # --- Beginning -----------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Wait to be admitted."""
        self._transport = cast(asyncio.Transport, transport)
        self.last_active_s = self._server.now_s()
        self._server.arrive(self, self._transport, self._listener)

    def begin(self, connection: ClientConnection) -> None:
        """Be admitted; shake hands first where the listener asks for TLS."""
        assert self._transport is not None
        self.last_active_s = self._server.now_s()
        self._connection = connection
        if self._gate.tls is not None:
            self._handshake = asyncio.create_task(self._shake_hands(connection, self._transport))
        else:
            self._begin(connection, self._transport, None)

    @property
    def info(self) -> ClientConnectionInfo | None:
        """Who is connected; None before it was admitted."""
        return self._connection.info if self._connection is not None else None

    async def _shake_hands(self, connection: ClientConnection, bare: asyncio.Transport) -> None:
        transport, why = None, ""
        try:
            assert self._gate.tls is not None
            transport = await asyncio.get_running_loop().start_tls(
                bare,
                self,
                self._gate.tls,
                server_side=True,
                ssl_handshake_timeout=self._server.limits.handshake_s,
                ssl_shutdown_timeout=_TLS_GOODBYE_S,
            )
        except ssl.SSLError as wrong:
            why = f"the TLS handshake failed: {wrong.reason or type(wrong).__name__}"
        except ConnectionAbortedError:  # asyncio's word for a handshake that takes too long
            why = "the client did not finish the TLS handshake in time"
        except OSError:
            why = "the client went away during the TLS handshake"
        finally:
            self._handshake = None
            if transport is None:
                bare.abort()
                self._server.logins.failed(
                    connection.info, None, why or "given up in the handshake"
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
        """Serve: what came early first."""
        self._transport = transport
        transport.set_write_buffer_limits(high=WRITE_HIGH_WATER_BYTES)
        try:
            self._login = self._server.logins.identify(connection.info, self._gate, certificate)
        except Exception as wrong:  # A principal builder may be anybody's.
            _log.info("%s: %s", connection.info.connection_id, wrong)
            self._server.logins.failed(connection.info, None, "no principal could be built")
            self.abort()
            return
        if self._login is None:
            self._server.known(self)
        else:
            connection.frame_bytes_max = self._server.limits.login_frame_bytes_max
        early, self._early = self._early, []
        for data in early:
            self.data_received(data)

    # --- Reading -------------------------------------------------------------------------

    def data_received(self, data: bytes) -> None:
        """Take bytes; have what is whole executed in its turn."""
        connection, transport = self._connection, self._transport
        if connection is None or transport is None or transport.is_closing():
            return
        self.last_active_s = self._server.now_s()
        if self._handshake is not None:
            self._early.append(data)
            return
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
                if self._login is not None and not self._login.is_complete:
                    server.logins.failed(connection.info, self._login, str(connection.broken))
                self.close()
        except Exception:
            _log.exception("%s: a fault closes the connection", connection.info.connection_id)
            self.close()
        finally:
            self._task = None
            server.flush_events()

    def _write(self, answers: list[bytes], transport: asyncio.Transport) -> None:
        began_ns = self._server.now_ns()
        if answers and not transport.is_closing():
            # The evidence reaches the operating system before the answer it speaks of.
            self._server.flush_events()
            transport.write(b"".join(answers))
        answers.clear()
        self._server.request_log.completed(self._completed, began_ns)
        self._completed.clear()

    async def _answer(
        self, connection: ClientConnection, data: bytes, ready: list[bytes]
    ) -> tuple[bytes | None, int]:
        """Return the answer (None: close), and for how many milliseconds to be mute after it."""
        if self._login is None:
            return await self._execute(connection, data, ready)
        renewed = self._login.principal is not None
        match self._login.receive(data, self._server.now_ns() // 1_000_000):
            case Dispatch():
                return await self._execute(connection, data, ready)
            case Reply(payload, logged_in):
                if logged_in:
                    self._server.logins.logged_in(connection.info, self._login, renewed=renewed)
                    connection.frame_bytes_max = self._server.limits.frame_bytes_max
                    self._server.known(self)
                return payload, 0
            case Refuse(payload, reason):
                assert self._transport is not None
                self._write(ready, self._transport)
                self._transport.pause_reading()
                self._server.logins.failed(connection.info, self._login, reason)
                await self._be_mute(self._server.limits.failed_login_delay_ms)
                if payload is not None:
                    ready.append(frame(payload))
            case Expired():
                self._server.logins.expired(connection.info)
        return None, 0

    async def _execute(
        self, connection: ClientConnection, data: bytes, ready: list[bytes]
    ) -> tuple[bytes | None, int]:
        server = self._server
        try:
            request = connection.open_request(data, server.now_ns())
        except UnsupportedVersionError as refused:
            request = connection.name_request(refused.header, data, len(data), server.now_ns())
            self._completed.append(request)
            return server.dispatcher.answer_unsupported(request), 0
        except WireError as wrong:
            _log.info("%s: %s", connection.info.connection_id, wrong)
            return None, 0
        if ready and server.dispatcher.may_take_long(request):
            assert self._transport is not None
            self._write(ready, self._transport)
        answer = await server.dispatcher.answer(request)
        if request.course.is_left:  # Until the client gives up, or is idle for too long.
            await self._be_mute(server.limits.idle_ms_max)
        self._completed.append(request)
        return answer, request.course.throttle_ms

    async def _be_mute(self, throttle_ms: int) -> None:
        """Serve nothing for so long, or until the client is gone or the server stops (KIP-219)."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(throttle_ms / 1000):
                await self._ended.wait()

    # --- Ending --------------------------------------------------------------------------

    def pause_writing(self) -> None:
        """The client does not read: execute no more for it."""
        self._writable.clear()

    def resume_writing(self) -> None:
        """It reads again."""
        self._writable.set()

    def connection_lost(self, exc: Exception | None) -> None:
        """The connection is gone."""
        self._writable.set()
        self._ended.set()
        if self._handshake is None or self._handshake.done():
            self._dismiss()

    def _dismiss(self) -> None:
        if self._connection is not None and not self._is_dismissed:
            self._is_dismissed = True
            self._server.dismiss(self, self._connection)

    @property
    def is_idle(self) -> bool:
        """True while no request of this connection is executed."""
        return self._task is None

    @property
    def is_closing(self) -> bool:
        """True once it is to be closed."""
        return self._transport is None or self._transport.is_closing()

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

    def make_room(self) -> None:
        """Close: others, who came later, may prove sooner who they are."""
        if self._connection is not None and self._handshake is None:
            why = "too many clients have not proved who they are"
            self._server.logins.failed(self._connection.info, self._login, why)
        self.abort()

    def abort(self) -> None:
        """Close at once: nobody reads what was written."""
        if self._handshake is not None:
            self._handshake.cancel()
        if self._transport is not None:
            self._transport.abort()


def _certificate(transport: asyncio.BaseTransport) -> bytes | None:
    """Return the client's certificate, which TLS has verified; None when it showed none."""
    tls: ssl.SSLObject = transport.get_extra_info("ssl_object")
    return tls.getpeercert(binary_form=True)
