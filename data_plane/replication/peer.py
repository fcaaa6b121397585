"""A connection to another broker's inter-broker listener, with the admin client's protocol code."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, cast

from bridgehead.admin.config import Address
from bridgehead.admin.connection import BrokerConnection, Response, Stage
from bridgehead.admin.errors import AdminError, ConnectionFailedError
from bridgehead.admin.logins import Login
from bridgehead.admin.requests import Request
from bridgehead.kafka_wire.api_key import ApiKey


@dataclass(frozen=True, slots=True)
class PeerSecurity:
    """How this broker connects to others."""

    client_id: str
    tls: ssl.SSLContext | None
    new_login: Callable[[], Login] | None


class PeerConnection(asyncio.Protocol):
    """One connection; executes one request at a time."""

    def __init__(self, address: Address, security: PeerSecurity) -> None:
        login = security.new_login() if security.new_login is not None else None
        self._core = BrokerConnection(address, security.client_id, login)
        self._address = address
        self._transport: asyncio.Transport | None = None
        self._response: asyncio.Future[Response | None] | None = None

    @classmethod
    async def open(
        cls, address: Address, security: PeerSecurity, timeout_s: float
    ) -> PeerConnection:
        """Connect, negotiate versions and log in.

        Raises:
            AdminError: the connection, the negotiation or the login failed.
        """
        peer = cls(address, security)
        await peer.connect(security.tls, timeout_s)
        return peer

    async def connect(self, tls: ssl.SSLContext | None, timeout_s: float) -> None:
        """See `open`, which calls this once."""
        loop, address = asyncio.get_running_loop(), self._address
        self._response = ready = loop.create_future()
        try:
            async with asyncio.timeout(timeout_s):
                await loop.create_connection(
                    lambda: self,
                    address.host,
                    address.port,
                    ssl=tls,
                    server_hostname=address.host if tls is not None else None,
                )
                await ready
        except (OSError, TimeoutError) as error:
            self.close()
            raise ConnectionFailedError(
                f"The broker at {address} cannot be reached: {error or 'timeout'}."
            ) from None
        except BaseException:  # A fetcher that is no longer needed is cancelled here.
            self.close()
            raise

    async def request(self, key: ApiKey, message: Any, timeout_s: float) -> Any:
        """Send a request in the newest version that both brokers have; return the response.

        Raises:
            AdminError: there was no response. The connection is then closed.
        """
        assert self._transport is not None
        if self._transport.is_closing():
            raise ConnectionFailedError(f"The broker at {self._address} closed the connection.")
        try:
            version, _ = self._core.version_of(Request(key, lambda _: None))
            self._core.send(key, version, message)
            self._response = asyncio.get_running_loop().create_future()
            self._flush()
            async with asyncio.timeout(timeout_s):
                response = await self._response
        except TimeoutError:
            self.close()
            raise ConnectionFailedError(f"The broker at {self._address} does not answer.") from None
        except AdminError:
            self.close()
            raise
        assert response is not None
        return response.message

    @property
    def is_open(self) -> bool:
        """False once either side has closed the connection."""
        return self._transport is not None and not self._transport.is_closing()

    @property
    def api_ranges(self) -> Mapping[int, tuple[int, int]]:
        """The lowest and highest version of each API that the other side has, by API key."""
        return self._core.ranges

    def close(self) -> None:
        """Close the connection."""
        if self._transport is not None:
            self._transport.abort()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        self._core.opened()
        self._flush()

    def data_received(self, data: bytes) -> None:
        was_ready = self._core.stage is Stage.READY
        try:
            responses = self._core.receive(data)
        except AdminError as error:
            self._fail(error)
            self.close()
            return
        self._flush()
        if not was_ready and self._core.stage is Stage.READY:
            self._succeed(None)
        for response in responses:
            self._succeed(response)

    def connection_lost(self, exc: Exception | None) -> None:
        self._fail(ConnectionFailedError(f"The broker at {self._address} closed the connection."))

    def _flush(self) -> None:
        if self._core.outgoing and self._transport is not None:
            self._transport.write(bytes(self._core.outgoing))
            self._core.outgoing.clear()

    def _succeed(self, response: Response | None) -> None:
        if self._response is not None and not self._response.done():
            self._response.set_result(response)

    def _fail(self, error: AdminError) -> None:
        if self._response is not None and not self._response.done():
            self._response.set_exception(error)
