"""Varints, lengths and damaged text, read without trusting the data."""

from __future__ import annotations

import re
import threading
from typing import Final

VARINT_BYTES_MAX: Final = 5
STRING_BYTES_MAX: Final = 0x7FFF  # for compact strings, too
# Kafka has no such limits, only its memory (docs/differences.md). The first limit is on all arrays
# of a request together, and on its tagged fields; the second on the tagged fields of one struct.
ELEMENTS_MAX: Final = 100_000
# A KRaft controller names every partition of the cluster in one request; a partition with three
# replicas has seven elements.
CONTROLLERS_ELEMENTS_MAX: Final = 2_000_000
TAGS_MAX: Final = 1_000
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


def check_tags(count: int) -> None:
    """Raise WireError if a struct has too many tagged fields."""
    if count > TAGS_MAX:
        raise WireError(f"{count} tagged fields in one struct; the limit is {TAGS_MAX}")


class ElementCount(threading.local):
    """Counts the array elements and tagged fields of one message while a thread decodes it."""

    left = 0

    elements_max = 0

    def begin(self, elements_max: int) -> None:
        """Begin to count a message of at most this many elements."""
        self.left = self.elements_max = elements_max

    def add(self, count: int) -> None:
        """Count elements; raise WireError above the limit."""
        self.left -= max(count, 0)
        if self.left < 0:
            raise WireError(f"a request of more than {self.elements_max} elements")


def skip_tagged_fields(data: bytes, at: int, count: int) -> int:
    """Skip `count` unknown tagged fields; return the offset of their end."""
    check_tags(count)
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
