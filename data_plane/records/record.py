"""One record of format 2 (KIP-98): zigzag varints; offset and timestamp relative to the batch."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, NamedTuple

from bridgehead.kafka_wire.errors import ApiError, ErrorCode

NO_TIMESTAMP = -1
# Kafka has no such limit, only its memory (docs/differences.md).
HEADERS_MAX: Final = 100_000
Headers = tuple[tuple[bytes, bytes | None], ...]


class Record(NamedTuple):
    """A record with its absolute offset and timestamp (milliseconds since 1970, or -1)."""

    offset: int
    timestamp: int
    key: bytes | None
    value: bytes | None
    headers: Headers = ()


class NewRecord(NamedTuple):
    """A record that has no offset yet."""

    timestamp: int
    key: bytes | None
    value: bytes | None
    headers: Headers = ()


def parse_records(
    data: bytes, count: int, base_offset: int, base_timestamp: int
) -> Iterator[Record]:
    """Yield `count` records, which must fill `data`.

    Raises:
        ApiError: INVALID_RECORD; the bytes are not records.
    """
    at = 0
    try:
        for _ in range(count):
            size, at = _varint(data, at)
            end = at + size
            if size <= 0 or end > len(data):
                raise _invalid(f"a record of {size} bytes does not fit in its batch")
            record, at = _parse(data, at, base_offset, base_timestamp)
            if at != end:
                raise _invalid(f"a record of {size} bytes has {size + at - end} bytes of content")
            yield record
    except IndexError:
        raise _invalid("a record is truncated") from None
    if at != len(data):
        raise _invalid("there are more bytes than the batch's number of records says")


def _parse(data: bytes, at: int, base_offset: int, base_timestamp: int) -> tuple[Record, int]:
    timestamp_delta, at = _varint(data, at + 1, 64)  # Skips the attributes, which are unused.
    offset_delta, at = _varint(data, at)
    key, at = _sized(data, at)
    value, at = _sized(data, at)
    count, at = _varint(data, at)
    if not 0 <= count <= min(HEADERS_MAX, len(data) - at):
        raise _invalid(f"a record has {count} headers")
    headers = []
    for _ in range(count):
        name, at = _sized(data, at)
        if name is None:
            raise _invalid("the key of a header is null")
        content, at = _sized(data, at)
        headers.append((name, content))
    record = Record(
        base_offset + offset_delta, base_timestamp + timestamp_delta, key, value, tuple(headers)
    )
    return record, at


def encode_record(record: NewRecord, offset_delta: int, timestamp_delta: int) -> bytes:
    """Return the record with its length."""
    parts = [
        b"\x00",
        encode_varint(timestamp_delta),
        encode_varint(offset_delta),
        _encode_sized(record.key),
        _encode_sized(record.value),
        encode_varint(len(record.headers)),
    ]
    for name, content in record.headers:
        parts += (_encode_sized(name), _encode_sized(content))
    body = b"".join(parts)
    return encode_varint(len(body)) + body


def encode_varint(value: int) -> bytes:
    """Return a zigzag varint of up to 64 bits."""
    rest = (value << 1) ^ (value >> 63)
    out = bytearray()
    while rest > 0x7F:
        out.append((rest & 0x7F) | 0x80)
        rest >>= 7
    out.append(rest)
    return bytes(out)


def _encode_sized(content: bytes | None) -> bytes:
    return encode_varint(-1) if content is None else encode_varint(len(content)) + content


def _varint(data: bytes, at: int, bits: int = 32) -> tuple[int, int]:
    """Return a number and the place after it. As in Java, bits beyond `bits` are dropped."""
    byte = data[at]
    at += 1
    if byte < 0x80:  # most varints
        return (byte >> 1) ^ -(byte & 1), at
    value, shift = byte & 0x7F, 7
    while True:
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            value &= (1 << bits) - 1
            return (value >> 1) ^ -(value & 1), at
        shift += 7
        if shift >= bits:
            raise _invalid("a variable-length number is too long")


def _sized(data: bytes, at: int) -> tuple[bytes | None, int]:
    size, at = _varint(data, at)
    if size < 0:
        return None, at
    end = at + size
    if end > len(data):
        raise _invalid("a key, value or header is truncated")
    return data[at:end], end


def _invalid(text: str) -> ApiError:
    return ApiError(ErrorCode.INVALID_RECORD, f"The records are malformed: {text}.")
