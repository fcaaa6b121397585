"""Message sets: the formats 0 and 1, which record batches replaced (KIP-31, KIP-32).

A compressed set is the value of one wrapper message. In format 1 the offsets inside are relative,
and the wrapper has the absolute offset of the last message.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Final, NamedTuple

from bridgehead.kafka_wire.errors import ApiError, ErrorCode
from data_plane.records.batch import CODEC_MASK, LOG_APPEND_TIME_FLAG, split_batches
from data_plane.records.compression import (
    Codec,
    DecompressionError,
    compress,
    decompress,
    with_correct_lz4_checksum,
    with_format_0_lz4_checksum,
)
from data_plane.records.record import NO_TIMESTAMP, Record

# Kafka has no such limit, only its memory (docs/differences.md).
MESSAGES_MAX: Final = 100_000
_PREFIX: Final = struct.Struct(">qi")
_CHECKED: Final = struct.Struct(">IBb")  # checksum, magic, attributes
_CHECKED_AT: Final = 12
_CHECKSUM_FROM: Final = 16
_TIMESTAMP: Final = struct.Struct(">q")
_LENGTH: Final = struct.Struct(">i")
# Formats 0 and 1 have three codecs. KIP-110 added zstd, for format 2 only.
_CODECS: Final = frozenset({Codec.NONE, Codec.GZIP, Codec.SNAPPY, Codec.LZ4})


class Message(NamedTuple):
    """One message as it is on the wire. In a wrapper of format 1, `offset` is relative."""

    offset: int
    magic: int
    attributes: int
    timestamp: int
    key: bytes | None
    value: bytes | None
    is_intact: bool  # its checksum is right

    @property
    def codec_number(self) -> int:
        """The code of the compression of `value`."""
        return self.attributes & CODEC_MASK


def parse_message(data: bytes) -> Message:
    """Return one message of format 0 or 1.

    Raises:
        ApiError: CORRUPT_MESSAGE; lengths do not fit.
    """
    offset, _ = _PREFIX.unpack_from(data)
    checksum, magic, attributes = _CHECKED.unpack_from(data, _CHECKED_AT)
    at = _CHECKED_AT + _CHECKED.size
    timestamp = NO_TIMESTAMP
    try:
        if magic == 1:
            (timestamp,) = _TIMESTAMP.unpack_from(data, at)
            at += _TIMESTAMP.size
        key, at = _sized(data, at)
        value, at = _sized(data, at)
    except struct.error:
        raise _corrupt("a message is truncated") from None
    if at != len(data):
        raise _corrupt("a message has bytes after its value")
    is_intact = zlib.crc32(data[_CHECKSUM_FROM:]) == checksum
    return Message(offset, magic, attributes, timestamp, key, value, is_intact)


def messages_of(message: Message) -> Iterator[Record]:
    """Yield the messages inside a wrapper, or the message itself.

    Raises:
        ApiError: the wrapper cannot be read (INVALID_RECORD, CORRUPT_MESSAGE or
            UNSUPPORTED_COMPRESSION_TYPE).
    """
    codec = codec_of(message)
    if codec is Codec.NONE:
        yield Record(message.offset, message.timestamp, message.key, message.value)
        return
    if message.value is None:
        raise ApiError(ErrorCode.INVALID_RECORD, "Found invalid compressed record set with null "
                       f"value (magic = {message.magic})")  # fmt: skip
    inner = list(islice(split_batches(_expanded(message, codec)), MESSAGES_MAX + 1))
    if len(inner) > MESSAGES_MAX:
        raise ApiError(
            ErrorCode.MESSAGE_TOO_LARGE, f"A compressed message holds more than {MESSAGES_MAX}."
        )
    if not inner:
        raise ApiError(
            ErrorCode.INVALID_RECORD,
            "Found invalid compressed record set with no inner records",
        )
    shift = message.offset - parse_message(inner[-1]).offset if message.magic == 1 else 0
    appended = bool(message.attributes & LOG_APPEND_TIME_FLAG)
    for nested in map(parse_message, inner):
        if nested.magic != message.magic or nested.codec_number:
            raise ApiError(
                ErrorCode.INVALID_RECORD,
                "A compressed message holds messages of another format, or compressed messages.",
            )
        if not nested.is_intact:
            raise _corrupt("the checksum of a compressed message is wrong")
        time = message.timestamp if appended else nested.timestamp
        yield Record(nested.offset + shift, time, nested.key, nested.value)


def codec_of(message: Message) -> Codec:
    """Return the codec of a message.

    Raises:
        ApiError: formats 0 and 1 lack the codec (UNSUPPORTED_COMPRESSION_TYPE).
    """
    if message.codec_number not in _CODECS:
        raise ApiError(ErrorCode.UNSUPPORTED_COMPRESSION_TYPE)
    return Codec(message.codec_number)


def encode_message_set(
    records: Sequence[Record], magic: int, codec: Codec, log_append_time: int | None = None
) -> bytes:
    """Return the records as a set of format 0 or 1, which has no headers.

    `log_append_time`: the broker's time, which applies to all records; format 1 only.
    """
    flag = LOG_APPEND_TIME_FLAG if magic == 1 and log_append_time is not None else 0
    if codec is Codec.NONE:
        return b"".join(_encode(record, record.offset, magic, flag) for record in records)
    first = records[0].offset if magic == 1 else 0
    inner = b"".join(_encode(record, record.offset - first, magic, flag) for record in records)
    time = log_append_time if flag else max(record.timestamp for record in records)
    value = compress(codec, inner)
    if codec is Codec.LZ4 and magic == 0:
        value = with_format_0_lz4_checksum(value)
    wrapper = Record(
        records[-1].offset,
        NO_TIMESTAMP if time is None else time,
        None,
        value,
    )
    return _encode(wrapper, wrapper.offset, magic, flag | int(codec))


def _encode(record: Record, offset: int, magic: int, attributes: int) -> bytes:
    body = struct.pack(">Bb", magic, attributes)
    if magic == 1:
        body += _TIMESTAMP.pack(record.timestamp)
    body += _encode_sized(record.key) + _encode_sized(record.value)
    return _PREFIX.pack(offset, len(body) + 4) + struct.pack(">I", zlib.crc32(body)) + body


def _expanded(message: Message, codec: Codec) -> bytes:
    value = message.value or b""
    if codec is Codec.LZ4 and message.magic == 0:
        value = with_correct_lz4_checksum(value)
    try:
        return decompress(codec, value)
    except DecompressionError as error:
        raise _corrupt(str(error)) from error


def _sized(data: bytes, at: int) -> tuple[bytes | None, int]:
    (size,) = _LENGTH.unpack_from(data, at)
    at += _LENGTH.size
    if size < 0:
        return None, at
    if at + size > len(data):
        raise _corrupt("a key or value is truncated")
    return data[at : at + size], at + size


def _encode_sized(content: bytes | None) -> bytes:
    return _LENGTH.pack(-1) if content is None else _LENGTH.pack(len(content)) + content


def _corrupt(text: str) -> ApiError:
    return ApiError(ErrorCode.CORRUPT_MESSAGE, f"The message set is corrupt: {text}.")
