"""Varints, lengths and damaged text, read without trusting the data."""

from __future__ import annotations

import re
from typing import Final

VARINT_BYTES_MAX: Final = 5
STRING_BYTES_MAX: Final = 0x7FFF  # for compact strings, too
_HALF: Final = 1 << 31
_SURROGATE: Final = re.compile(rb"\xed[\xa0-\xbf][\x80-\xbf]?")
_REPLACEMENT: Final = "\ufffd".encode()


class WireError(Exception):
    """Bytes or values are not a valid message. The connection must be closed.

    Decoding and encoding raise no other exception for bad input.
    """


def encode_varint(value: int) -> bytes:
    """Return an unsigned varint: seven bits per byte, low bits first."""
    out = bytearray()
    while value > 127:
        out.append(value & 127 | 128)
        value >>= 7
    out.append(value)
    return bytes(out)


def decode_varint(data: bytes, at: int) -> tuple[int, int]:
    """Return a varint and the offset of its end. As in Kafka, 2^31 and above are negative.

    Raises:
        WireError: the varint is longer than five bytes, or incomplete.
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
    """Return a compact length (a varint minus one) and the offset of its end. Below 0 is null."""
    value, at = decode_varint(data, at)
    # Java's 32-bit arithmetic wraps around.
    return (value - 1 if value > -_HALF else _HALF - 1), at


def skip_bytes(data: bytes, at: int, size: int) -> int:
    """Skip a tagged field; return the offset of its end."""
    if not 0 <= size <= len(data) - at:
        raise WireError("the data ends within a tagged field")
    return at + size


def skip_tagged_fields(data: bytes, at: int, count: int) -> int:
    """Skip `count` unknown tagged fields; return the offset of their end."""
    for _ in range(count):
        _, at = decode_varint(data, at)
        size, at = decode_varint(data, at)
        at = skip_bytes(data, at, size)
    return at


def damaged_text(data: bytes) -> str:
    """Decode invalid UTF-8 as Java does, with U+FFFD for each invalid sequence.

    For one encoded surrogate, Java returns one U+FFFD, but Python returns two or three.
    """
    return _SURROGATE.sub(_REPLACEMENT, data).decode("utf-8", "replace")
