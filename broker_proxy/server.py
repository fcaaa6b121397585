"""The sockets: Kafka listeners and their connections.

A client that is slow, silent or hostile costs its own buffers and nothing else: frames are capped
before they are buffered, reading stops while answers pile up unread, and an idle connection is
closed after `connections.max.idle.ms`. Clients that have not proved who they are have a number of
their own: when it is reached, the oldest of them makes room.
"""

from __future__ import annotations

import asyncio
import dataclasses
import heapq
import ipaddress
import itertools
import logging
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Final

from broker_proxy.admission import Admission
from broker_proxy.apis.base import ClientConnectionInfo
from broker_proxy.client_socket import ClientSocket
from broker_proxy.connection import ClientConnection
from broker_proxy.dispatch import Dispatcher
from broker_proxy.logins import Gate, Listener, Logins
from broker_proxy.request_log import RequestLog
from cluster_model.host_text import host_text
from cluster_model.principal import ANONYMOUS
from event_log.connections import Connected, Disconnected
from event_log.writer import EventLog

_log = logging.getLogger(__name__)
# At the end: how long what was written may take to reach a client.
CLOSE_WITHIN_S: Final = 0.5
_BACKLOG: Final = 1024
# A client that takes longer for its TLS handshake is given up.
HANDSHAKE_S: Final = 30.0
# No mechanism here reads more, and two thousand strangers may send that much each. What
# sasl.server.max.receive.size says below that counts.
LOGIN_FRAME_BYTES_MAX: Final = 96 * 1024
# Clients that have not proved yet who they are: one more, and the oldest of them is closed.
UNKNOWN_MAX: Final = 2_000


@dataclass(frozen=True, slots=True)
class Limits:
    """What a connection may cost."""

    frame_bytes_max: int  # socket.request.max.bytes
    idle_ms_max: int  # connections.max.idle.ms
    login_frame_bytes_max: int = LOGIN_FRAME_BYTES_MAX
    failed_login_delay_ms: int = 100  # connection.failed.authentication.delay.ms
    handshake_s: float = HANDSHAKE_S


class KafkaServer:
    """All listeners of one broker."""

    def __init__(
        self,
        *,
        dispatcher: Dispatcher,
        logins: Logins,
        limits: Limits,
        request_prefix: str,
        log: EventLog,
        request_log: RequestLog,
        admission: Admission,
        now_s: Callable[[], float],
        now_ns: Callable[[], int],
    ) -> None:
        self.dispatcher = dispatcher
        self.logins = logins
        self.limits = limits
        self._prefix = request_prefix
        self._log = log
        self.request_log = request_log
        self._admission = admission
        self.now_s = now_s
        self.now_ns = now_ns
        self._counter = itertools.count(1)
        self._servers: list[asyncio.Server] = []
        self._protocols: set[ClientSocket] = set()
        self._unknown: dict[ClientSocket, None] = {}  # oldest first
        self._dismissed = asyncio.Event()
        self._idle_timer: asyncio.TimerHandle | None = None

    async def bind(self, listener: Listener, gate: Gate) -> Listener:
        """Take the listener's port, serve nothing yet; return it with the port it got.

        Raises:
            OSError: the port is taken or the address is not ours.
        """
        server = await asyncio.get_running_loop().create_server(
            lambda: ClientSocket(self, listener, gate),
            listener.host,
            listener.port,
            backlog=_BACKLOG,
            start_serving=False,
        )
        self._servers.append(server)
        return dataclasses.replace(listener, port=server.sockets[0].getsockname()[1])

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
        """Clients connected now."""
        return len(self._protocols)

    def connected_software(self) -> Iterator[tuple[str, str, str]]:
        """Yield, for each client connected now, its software, that one's version, its listener."""
        for protocol in self._protocols:
            if (info := protocol.info) is not None:
                yield info.software_name, info.software_version, info.listener_name

    @property
    def unknown_count(self) -> int:
        """Clients connected now that have not proved yet who they are."""
        return len(self._unknown)

    def known(self, protocol: ClientSocket) -> None:
        """A client has passed its listener's gate."""
        self._unknown.pop(protocol, None)

    def arrive(
        self, protocol: ClientSocket, transport: asyncio.Transport, listener: Listener
    ) -> None:
        """Have a new connection begin when its turn comes."""
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
        """Name a new connection."""
        local = transport.get_extra_info("sockname")
        if len(self._unknown) >= UNKNOWN_MAX:
            oldest = next(iter(self._unknown))
            del self._unknown[oldest]
            oldest.make_room()
        number = next(self._counter)
        self._protocols.add(protocol)
        self._unknown[protocol] = None
        info = ClientConnectionInfo(
            connection_id=f"{local[0]}:{local[1]}-{remote[0]}:{remote[1]}-{number}",
            listener_name=listener.name,
            security_protocol=listener.security_protocol,
            dialect=listener.dialect,
            client_host=host_text(address),
            client_address=address,
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
            frame_bytes_max=self.limits.frame_bytes_max,
        )

    def limits_changed(self) -> None:
        """Other numbers of connections are allowed: some have to go, or may come."""
        self._close_excess()
        self._admission.look_again()

    def _close_excess(self) -> None:
        """Close who was least recently used, as Kafka does, but on the listener between brokers."""
        quotas = self._admission.quotas
        if not (excess := quotas.excess):
            return
        open_ones = [
            (not protocol.is_closing, protocol.last_active_s, id(protocol), protocol)
            for protocol in self._protocols
            if protocol.info is not None and not quotas.is_protected(protocol.info.listener_name)
        ]
        for *_, protocol in heapq.nsmallest(excess, open_ones):
            protocol.abort()

    def dismiss(self, protocol: ClientSocket, connection: ClientConnection) -> None:
        """A connection is gone."""
        self._protocols.discard(protocol)
        self._unknown.pop(protocol, None)
        self._dismissed.set()
        self._admission.left(connection.info.listener_name, connection.info.client_host)
        self._log.append(Disconnected(connection=connection.info.connection_id))

    def flush_events(self) -> None:
        """Hand the evidence to the operating system."""
        self._log.flush()

    def _close_idle(self) -> None:
        limit_s = self.limits.idle_ms_max / 1000
        oldest = self.now_s() - limit_s
        for protocol in tuple(self._protocols):
            if protocol.last_active_s < oldest and (protocol.is_idle or protocol.is_stuck):
                protocol.abort()
        self._idle_timer = asyncio.get_running_loop().call_later(
            min(max(limit_s / 4, 0.1), 30.0), self._close_idle
        )
