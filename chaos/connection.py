"""A client that writes what it is told, byte for byte, and logs in when it is told to."""

from __future__ import annotations

import base64
import socket
import struct
from typing import Any, Final

from bridgehead.kafka_wire.headers import RequestHeader, encode_request_header
from bridgehead.kafka_wire.json_form import encode_body

CLOSED: Final = "closed"
TIMEOUT: Final = "timeout"
NO_TAGS: Final = b"\0"
UNKNOWN_TAG: Final = b"\x01\x63\x03abc"  # one; number 99, three bytes
_ANSWER_S: Final = 15.0
_SASL_HANDSHAKE: Final = 17
_SASL_AUTHENTICATE: Final = 36


class Connection:
    """A client's socket, one request at a time."""

    def __init__(self, address: str, from_host: str = "", answer_s: float = _ANSWER_S) -> None:
        """Connect from any address of this machine, or from one of them."""
        host, _, port = address.rpartition(":")
        source = (from_host, 0) if from_host else None
        self._socket = socket.create_connection((host, int(port)), _ANSWER_S, source)
        self.wait_for(answer_s)

    def wait_for(self, answer_s: float) -> None:
        """Give every answer from now on so much time."""
        self._socket.settimeout(answer_s)

    def ask(self, payload: bytes) -> bytes | str:
        """Return the answer without its length, or `CLOSED` or `TIMEOUT`."""
        try:
            self._socket.sendall(struct.pack(">i", len(payload)) + payload)
        except ConnectionError:
            return CLOSED
        return self.answer()

    def answer(self) -> bytes | str:
        """Return the next answer, as `ask` does."""
        try:
            (length,) = struct.unpack(">i", self._read(4))
            return self._read(length)
        except TimeoutError:
            return TIMEOUT
        except (EOFError, ConnectionError):
            return CLOSED

    def _read(self, count: int) -> bytes:
        data = b""
        while len(data) < count:
            more = self._socket.recv(count - len(data))
            if not more:
                raise EOFError
            data += more
        return data

    def log_in(self, user: str, password: str) -> bool:
        """Log in with SASL PLAIN; False when that failed."""
        token = base64.b64encode(f"\0{user}\0{password}".encode()).decode()
        answers = (
            self.ask(request_bytes(_SASL_HANDSHAKE, 1, {"mechanism": "PLAIN"})),
            self.ask(request_bytes(_SASL_AUTHENTICATE, 1, {"authBytes": token})),
        )
        return all(isinstance(each, bytes) and each[4:6] == b"\0\0" for each in answers)

    def close(self) -> None:
        """Close the socket."""
        self._socket.close()


def request_bytes(
    key: int, version: int, body: dict[str, Any], *, unknown_tags: bool = False
) -> bytes:
    """Return a request with header, from the JSON form of its body.

    `unknown_tags`: header and body, in a flexible version, carry a tagged field that nobody knows.
    """
    head = encode_request_header(RequestHeader(key, version, 7, "probe"))
    data = encode_body(key, "request", version, body)
    if not unknown_tags:
        return head + data
    assert head.endswith(NO_TAGS), "the version is not flexible"
    assert data.endswith(NO_TAGS), "the body has tagged fields of its own"
    return head[:-1] + UNKNOWN_TAG + data[:-1] + UNKNOWN_TAG
