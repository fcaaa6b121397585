"""Varints, and the reading of lengths that nobody may be trusted with."""

from __future__ import annotations

from typing import Final

VARINT_BYTES_MAX: Final = 5


class WireError(Exception):
    """Bytes or values that are not the message they claim to be. Close the connection.

    The only exception that decoding and encoding raise for bad input.
    """


def encode_varint(value: int) -> bytes:
    """Return an unsigned varint: seven bits a byte, low ones first."""
    out = bytearray()
    while value > 127:
        out.append(value & 127 | 128)
        value >>= 7
    out.append(value)
    return bytes(out)


def decode_varint(data: bytes, at: int) -> tuple[int, int]:
    """Return an unsigned varint and where it ends.

    Raises:
        WireError: it does not end within five bytes, or within the data.
    """
    value = shift = 0
    for position in range(at, at + VARINT_BYTES_MAX):
        if position >= len(data):
            raise WireError("the data ends within a varint")
        byte = data[position]
        value |= (byte & 127) << shift
        if byte < 128:
            # Kafka reads into 32 bits and lets the fifth byte overflow.
            return value & 0xFFFFFFFF, position + 1
        shift += 7
    raise WireError("a varint of more than five bytes")


def skip_tagged_fields(data: bytes, at: int, count: int) -> int:
    """Step over `count` tagged fields that nobody here knows; return where they end."""
    for _ in range(count):
        _, at = decode_varint(data, at)
        size, at = decode_varint(data, at)
        at += size
        if at > len(data):
            raise WireError("the data ends within a tagged field")
    return at
