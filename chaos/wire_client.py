"""A client of many brokers on the event loop: one connection for each, opened when it is needed."""

from __future__ import annotations

import asyncio
import struct
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from bridgehead.kafka_wire.codec import decode_response, encode_request
from bridgehead.kafka_wire.headers import (
    RequestHeader,
    decode_response_header,
    encode_request_header,
)
from bridgehead.kafka_wire.messages.sasl_authenticate import SaslAuthenticateRequest
from bridgehead.kafka_wire.messages.sasl_handshake import SaslHandshakeRequest

_LENGTH: Final = struct.Struct(">i")
_SASL_HANDSHAKE, _SASL_AUTHENTICATE = 17, 36
_ANSWER_S: Final = 60.0

Streams = tuple[asyncio.StreamReader, asyncio.StreamWriter]


@dataclass(frozen=True, slots=True)
class PlainLogin:
    """Who logs in with SASL PLAIN."""

    user: str
    password: str


class WireClient:
    """Asks one request after another; what breaks is opened again by the next one."""

    def __init__(
        self,
        addresses: Mapping[int, str],
        client_id: str,
        *,
        login: PlainLogin | None = None,
        from_host: str = "",
    ) -> None:
        """`addresses`: `host:port` by broker. `from_host`: an address of this machine."""
        self._addresses = addresses
        self._client_id = client_id
        self._login = login
        self._from = (from_host, 0) if from_host else None
        self._open: dict[int, Streams] = {}

    async def ask(self, broker: int, key: int, version: int, message: Any) -> Any:
        """Return the answer. Raises OSError or EOFError: there was none."""
        try:
            async with asyncio.timeout(_ANSWER_S):
                if broker not in self._open:
                    await self._connect(broker)
                return await self._exchange(self._open[broker], key, version, message)
        except (OSError, EOFError):  # A timeout is an OSError.
            connection = self._open.pop(broker, None)
            if connection is not None:
                connection[1].close()
            raise

    async def _connect(self, broker: int) -> None:
        host, _, port = self._addresses[broker].rpartition(":")
        streams = await asyncio.open_connection(host, int(port), local_addr=self._from)
        self._open[broker] = streams
        if self._login is None:
            return
        token = f"\0{self._login.user}\0{self._login.password}".encode()
        for key, message in (
            (_SASL_HANDSHAKE, SaslHandshakeRequest("PLAIN")),
            (_SASL_AUTHENTICATE, SaslAuthenticateRequest(token)),
        ):
            answer = await self._exchange(streams, key, 1, message)
            if answer.error_code:
                raise ConnectionRefusedError(f"the login failed with {answer.error_code}")

    async def _exchange(self, streams: Streams, key: int, version: int, message: Any) -> Any:
        reader, writer = streams
        head = encode_request_header(RequestHeader(key, version, 1, self._client_id))
        payload = head + encode_request(key, version, message)
        writer.write(_LENGTH.pack(len(payload)) + payload)
        (length,) = _LENGTH.unpack(await reader.readexactly(_LENGTH.size))
        answer = await reader.readexactly(length)
        _, at = decode_response_header(key, version, answer)
        return decode_response(key, version, answer, at)

    def close(self) -> None:
        """Close every connection."""
        for _, writer in self._open.values():
            writer.close()
