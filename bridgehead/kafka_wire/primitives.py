"""Varints, and the reading of lengths that nobody may be trusted with."""

from __future__ import annotations

import re
from typing import Final

VARINT_BYTES_MAX: Final = 5
STRING_BYTES_MAX: Final = 0x7FFF  # Kafka holds compact strings to it as well
_HALF: Final = 1 << 31
_SURROGATE: Final = re.compile(rb"\xed[\xa0-\xbf][\x80-\xbf]?")
_REPLACEMENT: Final = "\ufffd".encode()


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
    """Return an unsigned varint, in the 32 bits that Kafka has for it, and where it ends.

    Five bytes can say more than 31 bits hold: like Kafka's, the number is then negative.

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
            value &= 0xFFFFFFFF
            return (value if value < _HALF else value - 2 * _HALF), position + 1
        shift += 7
    raise WireError("a varint of more than five bytes")


def decode_compact_length(data: bytes, at: int) -> tuple[int, int]:
    """Return the length that a varint holds plus one, and where it ends. Negative is null."""
    value, at = decode_varint(data, at)
    # One less than the least of 32 bits is the greatest.
    return (value - 1 if value > -_HALF else _HALF - 1), at


def skip_bytes(data: bytes, at: int, size: int) -> int:
    """Step over a tagged field; return where it ends."""
    if not 0 <= size <= len(data) - at:
        raise WireError("the data ends within a tagged field")
    return at + size


def skip_tagged_fields(data: bytes, at: int, count: int) -> int:
    """Step over `count` tagged fields that nobody here knows; return where they end."""
    for _ in range(count):
        _, at = decode_varint(data, at)
        size, at = decode_varint(data, at)
        at = skip_bytes(data, at, size)
    return at


def damaged_text(data: bytes) -> str:
    """Read bytes that are not UTF-8 as Java does: U+FFFD stands for what cannot be read.

    Java takes an encoded surrogate for one such thing, Python for two or three.
    """
    return _SURROGATE.sub(_REPLACEMENT, data).decode("utf-8", "replace")
