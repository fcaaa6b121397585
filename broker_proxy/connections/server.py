"""Kafka listeners and their connections.

A slow, silent or hostile client costs only its own buffers: frame lengths are checked before
buffering, reading pauses while responses pile up unread, and idle connections are closed after
`connections.max.idle.ms`. The number of unauthenticated clients is limited: at the limit each new
client causes the server to close the unauthenticated client that has been connected longest. The
number of all clients is limited by the file descriptors of the process (`clients_max`): at that
limit the server also closes the clients that have been silent longest.
"""

from __future__ import annotations

import asyncio
import dataclasses
import heapq
import ipaddress
import itertools
import logging
import os
import socket
import sys
from collections.abc import Iterator, Sequence
from typing import Final

from broker_proxy.authentication.listener_security import Listener, LoginRequirements
from broker_proxy.client_request import ClientConnectionInfo
from broker_proxy.connections.admission import Admission
from broker_proxy.connections.client_socket import ClientSocket, ConnectionServices
from broker_proxy.connections.connection import ClientConnection
from cluster_model.client import Client
from cluster_model.host_text import host_text
from event_log.events import Connected, Disconnected

_log = logging.getLogger(__name__)
# At shutdown the broker waits this long for written responses to reach their clients.
CLOSE_WITHIN_S: Final = 0.5
# At the limit of queued.max.request.bytes the broker looks for idle clients at this interval. In
# each interval it logs the first _LOGGED_PER_CHECK closed clients one by one, the rest as a number.
_MEMORY_CHECK_S: Final = 1.0
_LOGGED_PER_CHECK: Final = 5
_BACKLOG: Final = 1024
# asyncio accepts so many connections before it looks at anything else. They need descriptors.
ACCEPTED_AT_ONCE: Final = 64
# At this limit a new client causes the oldest unauthenticated one to be closed.
UNAUTHENTICATED_MAX: Final = 2_000


class KafkaServer:
    """All listeners of one broker."""

    new_socket = ClientSocket

    def __init__(
        self,
        *,
        services: ConnectionServices,
        request_prefix: str,
        admission: Admission,
        clients_max: int = sys.maxsize,
    ) -> None:
        self.services = services
        self._clients_max = clients_max
        self._unauthenticated_max = min(UNAUTHENTICATED_MAX, max(clients_max // 2, 1))
        self._log = services.log
        self._prefix = request_prefix
        self._admission = admission
        self._counter = itertools.count(1)
        self._servers: list[asyncio.Server] = []
        self._protocols: dict[ClientSocket, None] = {}  # oldest first
        self._unauthenticated: dict[ClientSocket, None] = {}  # oldest first
        self._dismissed = asyncio.Event()
        self._idle_timer: asyncio.TimerHandle | None = None
        self._memory_timer: asyncio.TimerHandle | None = None
        # Connections closed for their memory since the last check, minus `_LOGGED_PER_CHECK`.
        self._unlogged_count = -_LOGGED_PER_CHECK
        self.closed_for_memory_count = 0

    async def bind(self, listener: Listener, requirements: LoginRequirements) -> Listener:
        """Bind the listener's port without serving; return the listener with its actual port.

        Raises:
            OSError: the port is in use, or the address is not one of this machine.
        """
        server = await asyncio.get_running_loop().create_server(
            lambda: self.new_socket(self, listener, requirements),
            listener.host,
            listener.port,
            backlog=ACCEPTED_AT_ONCE,
            start_serving=False,
        )
        self._servers.append(server)
        return dataclasses.replace(listener, port=server.sockets[0].getsockname()[1])

    async def serve(self) -> None:
        """Accept clients on every bound listener."""
        for server in self._servers:
            await server.start_serving()
            for bound in server.sockets:  # asyncio uses one number for both purposes
                if bound.fileno() >= 0:
                    with socket.socket(fileno=os.dup(bound.fileno())) as same:
                        same.listen(_BACKLOG)
        self._close_idle()

    async def stop(self, grace_s: float) -> None:
        """Stop accepting, wait up to `grace_s` for running requests, then close everything."""
        for timer in filter(None, (self._idle_timer, self._memory_timer)):
            timer.cancel()
        for server in self._servers:
            server.close()
        self._admission.close()
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
        """The number of connected clients."""
        return len(self._protocols)

    def connected_software(self) -> Iterator[tuple[str, str, str]]:
        """Yield software name, software version and listener of each connected client."""
        for protocol in self._protocols:
            if (client := protocol.client) is not None:
                yield client.software_name, client.software_version, client.listener_name

    @property
    def unauthenticated_count(self) -> int:
        """The number of clients that are not authenticated yet."""
        return len(self._unauthenticated)

    def authenticated(self, protocol: ClientSocket) -> None:
        """Record that a client met its listener's login requirements."""
        self._unauthenticated.pop(protocol, None)

    def arrive(
        self, protocol: ClientSocket, transport: asyncio.Transport, listener: Listener
    ) -> None:
        """Queue a new connection for admission."""
        remote = transport.get_extra_info("peername")
        if remote is None:
            transport.abort()
            return
        address = ipaddress.ip_address(remote[0].split("%")[0])

        def enter() -> None:
            protocol.begin(self._admit(protocol, transport, listener, remote, address.packed))
            self._close_excess()

        self._admission.arrive(listener.name, transport, host_text(address.packed), enter)

    def _admit(
        self,
        protocol: ClientSocket,
        transport: asyncio.Transport,
        listener: Listener,
        remote: tuple[str, int],
        address: bytes,
    ) -> ClientConnection:
        """Give an admitted connection its id, record it, and register it.

        Raises:
            OSError: the evidence cannot be written.
        """
        local = transport.get_extra_info("sockname")
        self._make_room()
        number = next(self._counter)
        info = ClientConnectionInfo(
            connection_id=f"{local[0]}:{local[1]}-{remote[0]}:{remote[1]}-{number}",
            client=Client(
                host=host_text(address),
                listener_name=listener.name,
                security_protocol=listener.security_protocol,
                dialect=listener.dialect,
            ),
        )
        self._log.append(
            Connected(
                connection=info.connection_id,
                listener=listener.name,
                security_protocol=listener.security_protocol,
                client_host=info.client.host,
                principal=str(info.client.principal),
            )
        )
        self._protocols[protocol] = None
        self._unauthenticated[protocol] = None
        return ClientConnection(
            info,
            request_prefix=f"{self._prefix}.{number}",
            frame_bytes_max=self.services.limits.frame_bytes_max,
        )

    def _make_room(self) -> None:
        """Close clients if there are too many for one more."""
        is_full = len(self._protocols) >= self._clients_max
        if self._unauthenticated and (
            is_full or len(self._unauthenticated) >= self._unauthenticated_max
        ):
            oldest = next(iter(self._unauthenticated))
            del self._unauthenticated[oldest]
            self._protocols.pop(oldest)
            oldest.evict()
        elif is_full:
            # Several at once, because finding the silent ones takes time.
            silent = self._least_recently_used(max(self._clients_max // 100, 1))
            _log.warning(
                "closed the %d clients that were silent longest: the file descriptors of this "
                "process suffice for %d clients",
                *(len(silent), self._clients_max),
            )
            for protocol in silent:
                self._protocols.pop(protocol)
                protocol.abort()

    def limits_changed(self) -> None:
        """Apply new connection limits."""
        self._close_excess()
        self._admission.look_again()

    def _close_excess(self) -> None:
        """Close the least recently used connections above the broker-wide limit, as Kafka does.

        Connections on the inter-broker listener stay open, unless it is the only listener.
        """
        quotas = self._admission.quotas
        if not (excess := quotas.excess):
            return
        for protocol in self._least_recently_used(excess):
            protocol.abort()

    def _least_recently_used(self, count: int) -> list[ClientSocket]:
        quotas = self._admission.quotas
        open_ones = [
            (not protocol.is_closing, protocol.last_active_s, id(protocol), protocol)
            for protocol in self._protocols
            if (client := protocol.client) is not None
            and not quotas.is_protected(client.listener_name)
        ]
        return [protocol for *_, protocol in heapq.nsmallest(count, open_ones)]

    def dismiss(self, protocol: ClientSocket, connection: ClientConnection) -> None:
        """Unregister a closed connection."""
        self._protocols.pop(protocol, None)
        self._unauthenticated.pop(protocol, None)
        self._dismissed.set()
        client = connection.info.client
        self._admission.left(client.listener_name, client.host)
        self._log.append(Disconnected(connection=connection.info.connection_id))

    def memory_changed(self, protocol: ClientSocket, connection: ClientConnection) -> None:
        """Record that a connection's requests take more or less memory."""
        memory = self.services.memory
        memory.update(protocol, connection.held)
        self._close_for_memory(memory.take_excess())
        self._release_memory()

    def _release_memory(self) -> None:
        """Read on from clients for which there is memory; schedule checks while others wait."""
        memory = self.services.memory
        for connection in memory.released():
            connection.read_on()
        if self._memory_timer is None and (memory.is_exhausted or memory.has_muted):
            loop = asyncio.get_running_loop()
            due_s = loop.time() + _MEMORY_CHECK_S
            self._memory_timer = loop.call_at(due_s, self._check_memory, due_s)

    def _check_memory(self, due_s: float) -> None:
        memory, self._memory_timer = self.services.memory, None
        if self._unlogged_count > 0:
            _log.warning(
                "%d more connections were closed to free their memory", self._unlogged_count
            )
        self._unlogged_count = -_LOGGED_PER_CHECK
        late_s = asyncio.get_running_loop().time() - due_s
        # While the event loop was blocked, the broker read nothing from any client.
        was_blocked = late_s > _MEMORY_CHECK_S / 2
        unread_bytes = ClientSocket.unread_bytes
        self._close_for_memory(memory.take_idle(was_blocked=was_blocked, unread_bytes=unread_bytes))
        self._release_memory()

    def _close_for_memory(self, protocols: Sequence[ClientSocket]) -> None:
        for protocol in protocols:
            self.closed_for_memory_count += 1
            self._unlogged_count += 1
            if self._unlogged_count <= 0:
                _log.warning(
                    "%s: closed in the middle of a request, because the requests of all clients "
                    "use up queued.max.request.bytes=%d",
                    *(protocol.connection_id, self.services.memory.bytes_max),
                )
            protocol.give_up_frame()

    def _close_idle(self) -> None:
        limit_s = self.services.limits.idle_ms_max / 1000
        if limit_s < 0:  # As in Kafka, idle connections then stay open.
            return
        oldest = self.services.now_s() - limit_s
        for protocol in tuple(self._protocols):
            if protocol.last_active_s < oldest and (protocol.is_idle or protocol.is_stuck):
                protocol.abort()
        self._idle_timer = asyncio.get_running_loop().call_later(
            min(max(limit_s / 4, 0.1), 30.0), self._close_idle
        )
