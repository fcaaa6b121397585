"""Asyncio clients: one connection, one connection per broker, or many connections for load."""

from __future__ import annotations

import asyncio
import struct
import time
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final, NamedTuple

from bridgehead.kafka_wire.api_key import ApiKey
from bridgehead.kafka_wire.framing import frame
from bridgehead.kafka_wire.messages.sasl_authenticate import SaslAuthenticateRequest
from bridgehead.kafka_wire.messages.sasl_handshake import SaslHandshakeRequest
from bridgehead.raw_client.codec import CLIENT_ID, decode_message, encode_message

_RESPONSE_TIMEOUT_S: Final = 60.0


class PlainLogin(NamedTuple):
    """The credentials of SASL PLAIN."""

    user: str
    password: str


class AsyncConnection:
    """A client's socket. Methods raise EOFError or OSError when the connection ends."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader, self.writer = reader, writer

    @classmethod
    async def open(cls, address: str, from_host: str = "") -> AsyncConnection:
        """Connect to `host:port`. `from_host` is the local address to use, if not empty."""
        host, _, port = address.rpartition(":")
        source = (from_host, 0) if from_host else None
        streams = await asyncio.open_connection(host, int(port), limit=1 << 26, local_addr=source)
        return cls(*streams)

    def send(self, *requests: bytes) -> None:
        """Write all payloads at once."""
        self.writer.write(b"".join(map(frame, requests)))

    async def receive(self) -> bytes:
        """Return the next response's payload."""
        (length,) = struct.unpack(">i", await self.reader.readexactly(4))
        return await self.reader.readexactly(length)

    async def receive_or_none(self, within_s: float = _RESPONSE_TIMEOUT_S) -> bytes | None:
        """Return the next response's payload; None if the server closed the connection."""
        async with asyncio.timeout(within_s):
            try:
                return await self.receive()
            except (EOFError, ConnectionError):
                return None

    async def exchange(self, request: bytes) -> bytes:
        """Send a payload; return the response's payload."""
        self.send(request)
        return await self.receive()

    async def call(self, key: int, version: int, message: Any, client_id: str = CLIENT_ID) -> Any:
        """Send a message; return the response's message."""
        request = encode_message(key, version, message, client_id=client_id)
        return decode_message(key, version, await self.exchange(request))

    async def log_in(self, login: PlainLogin) -> None:
        """Log in with SASL PLAIN. Raises ConnectionRefusedError if the login fails."""
        token = f"\0{login.user}\0{login.password}".encode()
        for key, message in (
            (ApiKey.SASL_HANDSHAKE, SaslHandshakeRequest("PLAIN")),
            (ApiKey.SASL_AUTHENTICATE, SaslAuthenticateRequest(token)),
        ):
            response = await self.call(key, 1, message)
            if response.error_code:
                raise ConnectionRefusedError(f"the login failed with {response.error_code}")

    def close(self) -> None:
        """Close the socket."""
        self.writer.close()


class ClusterClient:
    """A client with one connection to each broker. It reconnects after a failure."""

    def __init__(
        self,
        addresses: Mapping[int, str],
        client_id: str,
        *,
        login: PlainLogin | None = None,
        from_host: str = "",
    ) -> None:
        """`addresses` maps broker ids to `host:port`. `from_host` is the local address to use."""
        self._addresses = addresses
        self._client_id = client_id
        self._login = login
        self._from_host = from_host
        self._open: dict[int, AsyncConnection] = {}

    async def call(self, broker: int, key: int, version: int, message: Any) -> Any:
        """Return the response's message. Raises OSError or EOFError if no response arrived."""
        try:
            async with asyncio.timeout(_RESPONSE_TIMEOUT_S):
                if broker not in self._open:
                    address = self._addresses[broker]
                    self._open[broker] = await AsyncConnection.open(address, self._from_host)
                    if self._login is not None:
                        await self._open[broker].log_in(self._login)
                return await self._open[broker].call(key, version, message, self._client_id)
        except (OSError, EOFError):  # A timeout is an OSError.
            if broker in self._open:
                self._open.pop(broker).close()
            raise

    def close(self) -> None:
        """Close every connection."""
        for connection in self._open.values():
            connection.close()


async def drive(
    address: str, *, connections: int, requests: Iterator[bytes], check: Callable[[bytes], None]
) -> list[float]:
    """Send all payloads over `connections` sockets; return every latency in seconds.

    Build the payloads beforehand: building a request can take longer than a node takes to answer
    it, and would then limit the load.
    """
    latencies: list[float] = []

    async def worker() -> None:
        connection = await AsyncConnection.open(address)
        for request in requests:
            began = time.perf_counter()
            response = await connection.exchange(request)
            latencies.append(time.perf_counter() - began)
            check(response)
        connection.close()

    await asyncio.gather(*(worker() for _ in range(connections)))
    return latencies
