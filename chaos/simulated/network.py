"""Simulated connections. Bytes and messages of one connection arrive in order, after random delays.

Messages of different connections may overtake each other. A cut holds messages back, as TCP does
when packets are lost: they arrive once the cut has ended, unless the connection has been closed.
"""

from __future__ import annotations

import asyncio
import random
from collections import defaultdict, deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Final, NamedTuple

from chaos.simulated.virtual_time import Process, SimulatedLoop, current_process

LOOPBACK: Final = "127.0.0.1"
_FIRST_CLIENT_PORT: Final = 40_000
_SHORT_DELAY_S: Final = (0.000_2, 0.004)
_LONG_DELAY_S: Final = (0.004, 0.04)
_LONG_SHARE: Final = 0.05
_GAP_S: Final = 0.000_001  # between two messages of a link, so that they arrive in order


class Direction(NamedTuple):
    """One direction of all connections to one service, as faults address it."""

    service: str  # for example "envelopes of 2"
    is_request: bool


class Message(NamedTuple):
    """A message on a link: what to call when it arrives."""

    deliver: Callable[..., None]
    arguments: tuple[Any, ...]


class DirectionFaults:
    """The faults of one path. All links of the path share it."""

    __slots__ = ("cuts", "holding", "slow_s")

    def __init__(self) -> None:
        self.cuts = 0  # While this is not 0, messages are held back.
        self.slow_s = 0.0
        self.holding: list[SimulatedLink] = []


class SimulatedLink:
    """One direction of one connection. Callbacks run in the context of the receiving process."""

    def __init__(
        self,
        network: SimulatedNetwork,
        path: Direction,
        receiver: Process | None,
        connection: SimulatedConnection,
    ) -> None:
        self._network = network
        self.path = path
        self.connection = connection
        self._route = network.routes[path]
        self._context = network.context if receiver is None else receiver.context
        self._last_due_s = 0.0
        self.held: deque[Message] = deque()

    def send(self, deliver: Callable[..., None], *arguments: Any) -> None:
        """Call `deliver` at the other end, after everything that was sent before."""
        network = self._network
        due_s = max(self._last_due_s + _GAP_S, network.loop.time() + network.delay_s(self._route))
        self._last_due_s = due_s
        network.loop.call_at(due_s, self._arrive, deliver, arguments, context=self._context)

    def _arrive(self, deliver: Callable[..., None], arguments: tuple[Any, ...]) -> None:
        gate = self._network.gate
        message = Message(deliver, arguments)
        if self.held or self._route.cuts or (gate is not None and gate(self, message)):
            if not self.held:
                self._route.holding.append(self)
            self.held.append(message)
        else:
            deliver(*arguments)

    def release(self) -> None:
        """Deliver what was held back."""
        held = list(self.held)
        self.held.clear()
        for deliver, arguments in held:
            self._network.loop.call_soon(self._arrive, deliver, arguments, context=self._context)

    def release_first(self) -> None:
        """Deliver the first message that was held back; the others arrive again."""
        deliver, arguments = self.held.popleft()
        self._network.loop.call_soon(deliver, *arguments, context=self._context)
        self.release()


class SimulatedConnection:
    """Two links, and what each end does when the connection is reset."""

    def __init__(
        self,
        network: SimulatedNetwork,
        service: str,
        client: Process | None,
        server: Process | None,
    ) -> None:
        self._network = network
        self.service = service
        self.client, self.server = client, server
        self.requests = SimulatedLink(network, Direction(service, is_request=True), server, self)
        self.replies = SimulatedLink(network, Direction(service, is_request=False), client, self)
        self.unfinished = 0  # Envelopes to which the server has not sent a reply
        self.on_client_reset: Callable[[], None] = lambda: None
        self.on_server_reset: Callable[[], None] = lambda: None
        network.connections[self] = None

    def close(self) -> None:
        """Forget the connection; messages on their way still arrive."""
        self._network.connections.pop(self, None)

    def reset(self) -> None:
        """Break the connection at both ends."""
        self.close()
        self.requests.send(self.on_server_reset)
        self.replies.send(self.on_client_reset)


class SimulatedNetwork:
    """All connections of one simulation."""

    def __init__(self, loop: SimulatedLoop, seed: int) -> None:
        self.loop = loop
        self.context = Process("network").context  # never paused
        self.connections: dict[SimulatedConnection, None] = {}
        self.routes: defaultdict[Direction, DirectionFaults] = defaultdict(DirectionFaults)
        self.listeners: dict[int, SimulatedListener] = {}
        # Called with each message that arrives; True holds it back, and what follows on its link.
        self.gate: Callable[[SimulatedLink, Message], bool] | None = None
        self._source = random.Random(f"delays {seed}")
        self._next_port = _FIRST_CLIENT_PORT

    def delay_s(self, route: DirectionFaults) -> float:
        """Draw the delay of one message."""
        draw = self._source.random
        least_s, most_s = _LONG_DELAY_S if draw() < _LONG_SHARE else _SHORT_DELAY_S
        return least_s + (most_s - least_s) * draw() + route.slow_s

    @contextmanager
    def cut(self, *paths: Direction) -> Iterator[None]:
        """Hold back all messages of these paths."""
        routes = [self.routes[path] for path in paths]
        for route in routes:
            route.cuts += 1
        try:
            yield
        finally:
            for route in routes:
                route.cuts -= 1
            for route in routes:
                if not route.cuts:
                    holding, route.holding = route.holding, []
                    for link in holding:
                        link.release()

    @contextmanager
    def slow(self, path: Direction, seconds: float) -> Iterator[None]:
        """Delay the messages of a path."""
        self.routes[path].slow_s = seconds
        try:
            yield
        finally:
            self.routes[path].slow_s = 0.0

    def reset(self, service: str) -> None:
        """Reset every connection to a service."""
        for connection in [
            candidate for candidate in self.connections if candidate.service == service
        ]:
            connection.reset()

    def has_unfinished(self, service: str) -> bool:
        """Return whether a reset would leave an Envelope to a service without a reply."""
        return any(
            connection.unfinished
            for connection in self.connections
            if connection.service == service
        )

    def process_ended(self, process: Process) -> None:
        """Reset the connections of an ended process, as its operating system does."""
        for port in [
            port for port, listener in self.listeners.items() if listener.process is process
        ]:
            del self.listeners[port]
        for connection in tuple(self.connections):
            if process in (connection.client, connection.server):
                connection.reset()

    def new_port(self) -> int:
        """Return a port that was never used."""
        self._next_port += 1
        return self._next_port

    # --- Byte streams ----------------------------------------------------------------------------

    def listen(
        self, process: Process | None, factory: Callable[[], asyncio.BaseProtocol], port: int
    ) -> SimulatedListener:
        """Bind a port (0: a free one) without accepting."""
        port = port or self.new_port()
        if port in self.listeners:
            raise OSError(f"port {port} is in use")
        listener = self.listeners[port] = SimulatedListener(self, process, factory, port)
        return listener

    async def connect(
        self,
        process: Process | None,
        factory: Callable[[], asyncio.BaseProtocol],
        port: int,
        from_host: str = LOOPBACK,
    ) -> tuple[asyncio.Transport, asyncio.BaseProtocol]:
        """Open a byte stream."""
        await asyncio.sleep(self.delay_s(self.routes[Direction(f"port {port}", is_request=True)]))
        listener = self.listeners.get(port)
        if listener is None or not listener.is_serving:
            raise ConnectionRefusedError(f"nothing listens on port {port}")
        connection = SimulatedConnection(self, f"port {port}", process, listener.process)
        ends = (from_host, self.new_port()), (LOOPBACK, port)
        client = SimulatedTransport(connection, ends[0], ends[1], is_client=True)
        server = SimulatedTransport(connection, ends[1], ends[0], is_client=False)
        client.peer, server.peer = server, client
        connection.on_client_reset = client.reset_by_peer
        connection.on_server_reset = server.reset_by_peer
        connection.requests.send(server.begin, listener.factory)
        protocol = factory()
        client.set_protocol(protocol)
        protocol.connection_made(client)
        return client, protocol


class SimulatedListener:
    """A bound port; it has the part of asyncio.Server that nodes use."""

    def __init__(
        self,
        network: SimulatedNetwork,
        process: Process | None,
        factory: Callable[[], asyncio.BaseProtocol],
        port: int,
    ) -> None:
        self._network = network
        self.process = process
        self.factory = factory
        self.port = port
        self.is_serving = False
        self.sockets = (self,)

    def getsockname(self) -> tuple[str, int]:
        """Return host and port."""
        return LOOPBACK, self.port

    def fileno(self) -> int:
        """Return -1: there is no real socket."""
        return -1

    async def start_serving(self) -> None:
        """Accept connections."""
        self.is_serving = True

    def close(self) -> None:
        """Release the port."""
        if self._network.listeners.get(self.port) is self:
            del self._network.listeners[self.port]


class SimulatedTransport(asyncio.Transport):
    """One end of a byte stream."""

    peer: SimulatedTransport

    def __init__(
        self,
        connection: SimulatedConnection,
        local: tuple[str, int],
        remote: tuple[str, int],
        *,
        is_client: bool,
    ) -> None:
        super().__init__({"sockname": local, "peername": remote})
        self._connection = connection
        self._out = connection.requests if is_client else connection.replies
        self._protocol: Any = None
        self._arrived: deque[bytes] = deque()
        self._is_reading = True
        self._has_ended = False  # the peer has sent everything
        self._is_closing = False

    def begin(self, factory: Callable[[], asyncio.BaseProtocol]) -> None:
        """Accept the connection, at the server's end."""
        self._protocol = factory()
        self._protocol.connection_made(self)

    def set_protocol(self, protocol: asyncio.BaseProtocol) -> None:
        self._protocol = protocol

    def get_protocol(self) -> asyncio.BaseProtocol:
        protocol: asyncio.BaseProtocol = self._protocol
        return protocol

    def write(self, data: bytes | bytearray | memoryview) -> None:
        if data and not self._is_closing:
            self._out.send(self.peer._received, bytes(data))

    def is_closing(self) -> bool:
        return self._is_closing

    def is_reading(self) -> bool:
        return self._is_reading and not self._is_closing

    def pause_reading(self) -> None:
        self._is_reading = False

    def resume_reading(self) -> None:
        self._is_reading = True
        if self._arrived or self._has_ended:
            asyncio.get_running_loop().call_soon(self._read_on)

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        """Ignore the limits: writes are never blocked."""

    def get_write_buffer_size(self) -> int:
        """Return 0: written bytes are sent at once."""
        return 0

    def can_write_eof(self) -> bool:
        """Return False: one half of the stream cannot be closed alone."""
        return False

    def close(self) -> None:
        self._end(None)

    def abort(self) -> None:
        self._end(None)

    def reset_by_peer(self) -> None:
        """The other end or its process is gone."""
        self._end(ConnectionResetError("the connection was reset"), tell_peer=False)

    def _end(self, error: Exception | None, *, tell_peer: bool = True) -> None:
        if self._is_closing:
            return
        self._is_closing = True
        self._connection.close()
        if tell_peer:
            self._out.send(self.peer._peer_closed)
        if self._protocol is not None:
            asyncio.get_running_loop().call_soon(self._protocol.connection_lost, error)

    def _received(self, data: bytes) -> None:
        self._arrived.append(data)
        self._read_on()

    def _peer_closed(self) -> None:
        self._has_ended = True
        self._read_on()

    def _read_on(self) -> None:
        while self._arrived and self.is_reading():
            self._protocol.data_received(self._arrived.popleft())
        if self._has_ended and not self._arrived and not self._is_closing:
            self._has_ended = False
            if not self._protocol.eof_received():
                self._end(None, tell_peer=False)


class NetworkLoop(SimulatedLoop):
    """The event loop; asyncio's functions for sockets use the simulated network."""

    def __init__(self, seed: int) -> None:
        super().__init__()
        self.network = SimulatedNetwork(self, seed)

    async def create_server(  # type: ignore[override]
        self,
        protocol_factory: Callable[[], asyncio.BaseProtocol],
        host: str | None = None,
        port: int = 0,
        *,
        start_serving: bool = True,
        **_others: Any,
    ) -> SimulatedListener:
        """See asyncio.AbstractEventLoop."""
        listener = self.network.listen(current_process(), protocol_factory, port)
        if start_serving:
            await listener.start_serving()
        return listener

    async def create_connection(  # type: ignore[override]
        self,
        protocol_factory: Callable[[], asyncio.BaseProtocol],
        host: str,
        port: int,
        *,
        local_addr: tuple[str, int] | None = None,
        **_others: Any,
    ) -> tuple[asyncio.Transport, asyncio.BaseProtocol]:
        from_host = LOOPBACK if local_addr is None else local_addr[0]
        return await self.network.connect(current_process(), protocol_factory, port, from_host)
