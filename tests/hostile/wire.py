"""Kafka's protocol as an attacker builds it, without code of the project: fields, frames, sockets.

A message is a list of fields, so that the mutations know where each field begins.
"""

from __future__ import annotations

import socket
import ssl
import struct
from collections.abc import Iterable, Sequence
from contextlib import suppress
from typing import Final, NamedTuple

CLOSED: Final = "closed"
SILENT: Final = "silent"
_RESPONSE_BYTES_MAX: Final = 64 * 1024 * 1024


class Field(NamedTuple):
    """One field of a message: its kind (`int`, `length`, `text`, `tags`) and its bytes."""

    kind: str
    data: bytes


Fields = Sequence[Field]


def number(format_: str, value: float) -> Field:
    """A number. `format_` is a format of `struct` without the byte order."""
    return Field("int", struct.pack(">" + format_, value))


def i8(value: int) -> Field:
    return number("b", value)


def i16(value: int) -> Field:
    return number("h", value)


def i32(value: int) -> Field:
    return number("i", value)


def i64(value: int) -> Field:
    return number("q", value)


def f64(value: float) -> Field:
    return number("d", value)


def text(value: str | bytes | None) -> list[Field]:
    """A nullable string with an int16 length."""
    if value is None:
        return [Field("length", b"\xff\xff")]
    data = value.encode() if isinstance(value, str) else value
    return [Field("length", struct.pack(">h", len(data))), Field("text", data)]


def blob(value: bytes) -> list[Field]:
    """Bytes with an int32 length."""
    return [Field("length", struct.pack(">i", len(value))), Field("text", value)]


def array(*elements: Iterable[Field]) -> list[Field]:
    """An array with an int32 length."""
    return [Field("length", struct.pack(">i", len(elements))), *flat(*elements)]


def varint(value: int) -> bytes:
    """An unsigned varint."""
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*out, value])


TAGS: Final = Field("tags", b"\0")


def ctext(value: str | bytes | None) -> list[Field]:
    """A compact nullable string, or compact bytes."""
    if value is None:
        return [Field("length", b"\0")]
    data = value.encode() if isinstance(value, str) else value
    return [Field("length", varint(len(data) + 1)), Field("text", data)]


def carray(*elements: Iterable[Field]) -> list[Field]:
    """A compact array."""
    return [Field("length", varint(len(elements) + 1)), *flat(*elements)]


def flat(*parts: Iterable[Field] | Field) -> list[Field]:
    """Join fields and lists of fields."""
    out: list[Field] = []
    for part in parts:
        if isinstance(part, Field):
            out.append(part)
        else:
            out.extend(part)
    return out


def joined(fields: Iterable[Field]) -> bytes:
    return b"".join(field.data for field in fields)


def head(key: int, version: int, *, flexible: bool = False, correlation: int = 7) -> list[Field]:
    """A request header."""
    base = [i16(key), i16(version), i32(correlation), *text("hostile")]
    return [*base, TAGS] if flexible else base


def framed(payload: bytes) -> bytes:
    return struct.pack(">i", len(payload)) + payload


class Wire:
    """A socket of the attacker."""

    def __init__(
        self, address: str, tls: ssl.SSLContext | None = None, timeout_s: float = 20.0
    ) -> None:
        """Connect to `host:port`, over TLS if `tls` is given. Raises OSError."""
        host, _, port = address.rpartition(":")
        self._socket = socket.create_connection((host, int(port)), timeout_s)
        if tls is not None:
            try:
                self._socket = tls.wrap_socket(self._socket, server_hostname=host)
            except BaseException:
                self._socket.close()
                raise

    def __enter__(self) -> Wire:
        return self

    def __exit__(self, *_: object) -> None:
        self._socket.close()

    def raw(self, data: bytes) -> bool:
        """Send bytes as they are; return whether the socket accepted them."""
        try:
            self._socket.sendall(data)
        except OSError:
            return False
        return True

    def half_close(self) -> None:
        """Close the sending side, unless the broker has closed the connection."""
        with suppress(OSError):
            self._socket.shutdown(socket.SHUT_WR)

    def call(self, payload: bytes) -> bytes | str:
        """Send a frame; return the response's payload, CLOSED or SILENT."""
        return self.respond() if self.raw(framed(payload)) else CLOSED

    def respond(self) -> bytes | str:
        """Return the next response's payload, CLOSED or SILENT."""
        try:
            (length,) = struct.unpack(">i", self._exactly(4))
            assert 0 <= length <= _RESPONSE_BYTES_MAX, f"a response of {length} bytes"
            return self._exactly(length)
        except TimeoutError:
            return SILENT
        except (EOFError, OSError):
            return CLOSED

    def rest(self, size_max: int = 1 << 24) -> bytes:
        """Return everything until the other end closes or the timeout passes."""
        out = bytearray()
        try:
            while len(out) < size_max and (more := self._socket.recv(65536)):
                out += more
        except OSError:
            pass
        return bytes(out)

    def _exactly(self, count: int) -> bytes:
        out = bytearray()
        while len(out) < count:
            more = self._socket.recv(count - len(out))
            if not more:
                raise EOFError
            out += more
        return bytes(out)
