"""A blocking client connection that sends given bytes unchanged."""

from __future__ import annotations

import base64
import socket
import struct
from typing import Any, Final

from bridgehead.kafka_wire.api_key import ApiKey
from bridgehead.kafka_wire.framing import frame
from bridgehead.raw_client.codec import Body, decode_json, encode_json

CLOSED: Final = "closed"
TIMEOUT: Final = "timeout"
_RESPONSE_TIMEOUT_S: Final = 15.0


class Connection:
    """A client's socket, one request at a time."""

    def __init__(
        self, address: str, from_host: str = "", timeout_s: float = _RESPONSE_TIMEOUT_S
    ) -> None:
        """Connect to `host:port`. `from_host` is the local address to use, if not empty."""
        host, _, port = address.rpartition(":")
        source = (from_host, 0) if from_host else None
        self._socket = socket.create_connection((host, int(port)), _RESPONSE_TIMEOUT_S, source)
        self.set_timeout(timeout_s)

    def __enter__(self) -> Connection:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def set_timeout(self, timeout_s: float) -> None:
        """Set how long to wait for each response."""
        self._socket.settimeout(timeout_s)

    def exchange(self, request: bytes) -> bytes | str:
        """Send a payload; return the response's payload, CLOSED or TIMEOUT."""
        return self.receive() if self.send(request) else CLOSED

    def send(self, request: bytes) -> bool:
        """Send a payload; return False if the connection is closed."""
        try:
            self._socket.sendall(frame(request))
        except ConnectionError:
            return False
        return True

    def receive(self) -> bytes | str:
        """Return the next response's payload, CLOSED or TIMEOUT."""
        try:
            (length,) = struct.unpack(">i", self._read(4))
            return self._read(length)
        except TimeoutError:
            return TIMEOUT
        except (EOFError, ConnectionError):
            return CLOSED

    def call(self, key: int, version: int, body: Body, **options: Any) -> Any:
        """Return the response's body as JSON. Raises ConnectionError if no response arrived.

        `options` are passed to `encode_json`.
        """
        response = self.exchange(encode_json(key, version, body, **options))
        if isinstance(response, str):
            raise ConnectionError(f"no response to API {key}: {response}")
        return decode_json(key, version, response, options.get("dialect", "shipped"))

    def log_in(self, user: str, password: str) -> bool:
        """Log in with SASL PLAIN; return whether it succeeded."""
        token = base64.b64encode(f"\0{user}\0{password}".encode()).decode()
        try:
            handshake = self.call(ApiKey.SASL_HANDSHAKE, 1, {"mechanism": "PLAIN"})
            response = self.call(ApiKey.SASL_AUTHENTICATE, 1, {"authBytes": token})
        except ConnectionError:
            return False
        return not (handshake["errorCode"] or response["errorCode"])

    def close(self) -> None:
        """Close the socket."""
        self._socket.close()

    def _read(self, count: int) -> bytes:
        data = b""
        while len(data) < count:
            more = self._socket.recv(count - len(data))
            if not more:
                raise EOFError
            data += more
        return data


def call_once(address: str, key: int, version: int, body: Body, **options: Any) -> Any:
    """Return the result of `Connection.call` on a new connection."""
    with Connection(address) as connection:
        return connection.call(key, version, body, **options)
