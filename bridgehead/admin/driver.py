"""The I/O of AdminClient and AsyncAdminClient: carries out the core's effects with asyncio."""

from __future__ import annotations

import asyncio
import os
import random
import socket
import ssl
import time
from collections.abc import Callable, Mapping
from typing import Any, Final, TypeVar, cast

from bridgehead.admin.config import Address, AdminConfig, read_config
from bridgehead.admin.core import AdminCore
from bridgehead.admin.credentials import login_source
from bridgehead.admin.effects import Complete, Connect, Disconnect, Effect, Send
from bridgehead.admin.errors import AdminError, AuthenticationError, ConnectionFailedError
from bridgehead.admin.requests import Plan, closed
from bridgehead.admin.results import Try
from bridgehead.admin.tls import build_tls

X = TypeVar("X")
OnEnd = Callable[[Try[Any]], None]
_READ_BYTES: Final = 65_536
_UNNUMBERED: Final = 0  # the core counts calls from 1
_BUFFERS: Final = (
    ("send.buffer.bytes", socket.SO_SNDBUF),
    ("receive.buffer.bytes", socket.SO_RCVBUF),
)


class Driver:
    """One client's core and its sockets. Only one thread at a time may use it."""

    def __init__(
        self, properties: Mapping[str, object], token: Callable[[], str] | None = None
    ) -> None:
        """Check the properties, but open no connection. Raises AdminConfigError."""
        self._config: AdminConfig = read_config(properties)
        self._tls = build_tls(self._config)
        self._core = AdminCore(self._config, login_source(self._config, token), random.randrange)
        self._on_end: dict[int, OnEnd] = {}
        self._sockets: dict[int, asyncio.Transport] = {}
        self._wanted: set[int] = set()
        self._opening: dict[int, asyncio.Task[None]] = {}
        self._timer: asyncio.TimerHandle | None = None
        self._timer_ms = 0.0
        self._plain: dict[int, int] = {}  # connections without TLS, by descriptor
        self.loop: asyncio.AbstractEventLoop
        self.has_loop_work = False  # true: the loop must run now, even if no socket is ready
        self._is_closing = False
        self._all_closed = asyncio.Event()

    def submit(
        self, plan: Plan[Any], on_end: OnEnd, timeout_ms: int | None, broker: int | None
    ) -> int:
        """Begin a call; `on_end` is called with its outcome, but not before this method returns."""

        def begin() -> int:
            now_ms = _now_ms()
            number = self._core.submit(plan, now_ms, timeout_ms=timeout_ms, broker=broker)
            self._on_end[number] = self._on_end.pop(_UNNUMBERED)
            return number

        self._on_end[_UNNUMBERED] = on_end
        return self._step(begin)

    def cancel(self, number: int) -> None:
        """Forget a call."""
        self._on_end.pop(number, None)
        self._step(lambda: self._core.cancel(number))

    def read_without_loop(self, descriptor: int) -> bool:
        """Read from a socket; return False if the event loop must handle the socket.

        The event loop handles TLS, errors and the end of a connection.
        """
        number = self._plain.get(descriptor)
        if number is None:
            return False
        try:
            data = os.read(descriptor, _READ_BYTES)
        except OSError:
            return False
        if data:
            self.received(number, data)
        return bool(data)

    def seconds_to_tick(self) -> float | None:
        """Return the seconds until the core's next `tick`; None if none is due."""
        wakeup_ms = self._core.wakeup_ms()
        return None if wakeup_ms is None else max(0.0, wakeup_ms - _now_ms()) / 1000

    def prepare_loop(self) -> None:
        """Set the timer that the event loop needs. To be called before the event loop runs."""
        self.has_loop_work = False
        self._set_timer()

    async def close(self) -> None:
        """End every call and connection; return when all sockets are closed."""
        self.loop = asyncio.get_running_loop()  # not yet set if there was no call
        self._step(self._core.close)
        tasks = list(self._opening.values())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        self._is_closing = True
        if self._sockets:
            await self._all_closed.wait()
        if self._timer is not None:
            self._timer.cancel()

    def connected(self, number: int, transport: asyncio.Transport) -> None:
        """Take a new socket."""
        self._sockets[number] = transport
        if number not in self._wanted:  # closed by the core before it was open
            transport.abort()
            return
        connection = transport.get_extra_info("socket")
        if self._tls is None:
            self._plain[connection.fileno()] = number
        for name, option in _BUFFERS:
            if (size := self._config.numbers[name]) >= 0:
                connection.setsockopt(socket.SOL_SOCKET, option, size)
        self._step(lambda: self._core.connected(number, _now_ms()))

    def received(self, number: int, data: bytes) -> None:
        """Take bytes of a socket."""
        self._step(lambda: self._core.received(number, data, _now_ms()))

    def lost(self, number: int, error: AdminError) -> None:
        """Record that a socket is closed, or was not opened."""
        self._sockets.pop(number, None)
        self._plain = {
            descriptor: other for descriptor, other in self._plain.items() if other != number
        }
        self._wanted.discard(number)
        if self._is_closing and not self._sockets:
            self._all_closed.set()
        self._step(lambda: self._core.lost(number, error, _now_ms()))

    def _step(self, advance: Callable[[], X]) -> X:
        """Give the core one input and carry out the effects."""
        try:
            result = advance()
            self._carry_out()
        except BaseException:
            # After a bug, or Ctrl-C in the thread that runs the loop, the core's state may be
            # incomplete. So the client is closed.
            self._core.close()
            self._carry_out()
            for on_end in list(self._on_end.values()):
                on_end(Try.new_error(closed()))
            self._on_end.clear()
            raise
        return result

    def _carry_out(self) -> None:
        for effect in self._core.effects():
            self._do(effect)
        if self.loop.is_running():
            self._set_timer()

    def _set_timer(self) -> None:
        wakeup_ms = self._core.wakeup_ms()
        if wakeup_ms is None:
            return
        if self._timer is not None:
            if self._timer_ms <= wakeup_ms:
                return  # when this timer fires, `_tick` sets the next one
            self._timer.cancel()
        self._timer_ms = wakeup_ms
        self._timer = self.loop.call_later((wakeup_ms - _now_ms()) / 1000, self._tick)

    def _do(self, effect: Effect) -> None:
        match effect:
            case Send(number, data):
                transport = self._sockets[number]
                transport.write(data)
                self.has_loop_work |= transport.is_closing()  # the write has failed
            case Complete(number, outcome):
                if number in self._on_end:
                    self._end(number, outcome)
                else:  # the call ended during `submit`
                    self.has_loop_work = True
                    self.loop.call_soon(self._end, number, outcome)
            case Connect(number, address):
                self.has_loop_work = True
                self._wanted.add(number)
                task = self.loop.create_task(self._open(number, address))
                self._opening[number] = task
                task.add_done_callback(lambda _: self._opening.pop(number))
            case Disconnect(number):
                self.has_loop_work = True
                self._wanted.discard(number)
                if (task_ := self._opening.get(number)) is not None:
                    task_.cancel()
                if (open_ := self._sockets.get(number)) is not None:
                    open_.abort()

    def _end(self, number: int, outcome: Try[Any]) -> None:
        if (on_end := self._on_end.pop(number, None)) is not None:
            on_end(outcome)

    def _tick(self) -> None:
        self._timer = None
        # A timer may fire early by the clock's resolution, which is less than 1 ms.
        self._step(lambda: self._core.tick(_now_ms() + 1))

    async def _open(self, number: int, address: Address) -> None:
        try:
            await self.loop.create_connection(
                lambda: _Socket(self, number, address),
                address.host,
                address.port,
                ssl=self._tls,
                server_hostname=address.host if self._tls is not None else None,
            )
        except ssl.SSLCertVerificationError as error:
            self.lost(
                number,
                AuthenticationError(
                    f"The certificate of the broker at {address} is not trusted: "
                    f"{error.verify_message}."
                ),
            )
        except (OSError, ValueError) as error:  # ValueError: the host name or the port is malformed
            strerror = error.strerror if isinstance(error, OSError) else None
            reason = strerror or str(error) or type(error).__name__
            self.lost(
                number,
                ConnectionFailedError(f"The broker at {address} cannot be reached: {reason}."),
            )


def _now_ms() -> float:
    return time.monotonic() * 1000


class _Socket(asyncio.BufferedProtocol):
    """A socket with one buffer: asyncio would otherwise allocate 256 KiB for every read."""

    def __init__(self, driver: Driver, number: int, address: Address) -> None:
        self._driver, self._number, self._address = driver, number, address
        self._buffer = memoryview(bytearray(_READ_BYTES))

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._driver.connected(self._number, cast(asyncio.Transport, transport))

    def get_buffer(self, sizehint: int) -> memoryview:
        return self._buffer

    def buffer_updated(self, nbytes: int) -> None:
        self._driver.received(self._number, bytes(self._buffer[:nbytes]))

    def connection_lost(self, exc: Exception | None) -> None:
        reason = f": {exc}" if exc is not None else ""
        error = ConnectionFailedError(
            f"The broker at {self._address} closed the connection{reason}."
        )
        self._driver.lost(self._number, error)
