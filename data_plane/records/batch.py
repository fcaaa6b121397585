"""Record batches of format 2: header, records, checksum. KIP-98 §Message Format.

A batch is stored, replicated and returned as the producer compressed it, unless the topic's
`compression.type`, compaction or an old consumer requires another form.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

import google_crc32c

from bridgehead.kafka_wire.errors import ApiError, ErrorCode
from data_plane.records.compression import Codec, DecompressionError, compress, decompress
from data_plane.records.record import (
    NO_TIMESTAMP,
    NewRecord,
    Record,
    encode_record,
    parse_records,
)

MAGIC_V2: Final = 2
# Every format begins with the offset and the number of bytes after both; byte 16 is the magic.
PREFIX_BYTES: Final = 12
MAGIC_AT: Final = 16
HEADER: Final = struct.Struct(">qiibIhiqqqhii")
HEADER_BYTES: Final = HEADER.size
_PREFIX: Final = struct.Struct(">qi")
_CHECKED_FROM: Final = 21  # the checksum covers everything from the attributes on
_CRC: Final = struct.Struct(">I")
_CRC_AT: Final = 17
_LEADER_EPOCH_AT: Final = 12
_TIMES_AT: Final = 27
_ATTRIBUTES: Final = struct.Struct(">h")
_TIMES: Final = struct.Struct(">qq")

NO_PRODUCER_ID: Final = -1
NO_PRODUCER_EPOCH: Final = -1
NO_SEQUENCE: Final = -1
_SEQUENCE_MAX: Final = 2**31 - 1
CODEC_MASK: Final = 0x07
LOG_APPEND_TIME_FLAG: Final = 0x08
TRANSACTIONAL_FLAG: Final = 0x10
CONTROL_FLAG: Final = 0x20
DELETE_HORIZON_FLAG: Final = 0x40


class BatchHeader(NamedTuple):
    """The header's fields, in order. `length` does not count the first 12 bytes."""

    base_offset: int
    length: int
    leader_epoch: int
    magic: int
    crc: int
    attributes: int
    last_offset_delta: int
    base_timestamp: int
    max_timestamp: int
    producer_id: int
    producer_epoch: int
    base_sequence: int
    record_count: int

    @property
    def size(self) -> int:
        """The bytes of the whole batch."""
        return PREFIX_BYTES + self.length

    @property
    def last_offset(self) -> int:
        """The offset of the last record."""
        return self.base_offset + self.last_offset_delta

    @property
    def next_offset(self) -> int:
        """The offset after this batch."""
        return self.base_offset + self.last_offset_delta + 1

    @property
    def last_sequence(self) -> int:
        """The sequence of the last record; sequences continue at 0 after 2^31 - 1."""
        if self.producer_id == NO_PRODUCER_ID:
            return NO_SEQUENCE
        return (self.base_sequence + self.last_offset_delta) % (_SEQUENCE_MAX + 1)

    @property
    def codec_number(self) -> int:
        """The code of the compression, which may be unknown."""
        return self.attributes & CODEC_MASK

    @property
    def codec(self) -> Codec:
        """The compression codec. Only for validated batches: the codec of others may be unknown."""
        return Codec(self.attributes & CODEC_MASK)

    @property
    def has_log_append_time(self) -> bool:
        """True if `max_timestamp` is the broker's time and applies to all records."""
        return bool(self.attributes & LOG_APPEND_TIME_FLAG)

    @property
    def is_transactional(self) -> bool:
        """True for a batch of a transaction."""
        return bool(self.attributes & TRANSACTIONAL_FLAG)

    @property
    def is_control(self) -> bool:
        """True for a transaction marker."""
        return bool(self.attributes & CONTROL_FLAG)


def parse_header(data: bytes, at: int = 0) -> BatchHeader:
    """Return the header of format 2 at `at`. At least HEADER_BYTES must be available."""
    return BatchHeader._make(HEADER.unpack_from(data, at))


def parse_prefix(data: bytes, at: int = 0) -> tuple[int, int]:
    """Return the first offset and the size of a batch or message of any format."""
    offset, length = _PREFIX.unpack_from(data, at)
    return offset, PREFIX_BYTES + length


def split_batches(data: bytes) -> Iterator[bytes]:
    """Yield the whole batches or messages; an incomplete one at the end is omitted, as in Kafka.

    Raises:
        ApiError: CORRUPT_MESSAGE; a size is too small for any format.
    """
    at = 0
    while at + PREFIX_BYTES <= len(data):
        _, size = parse_prefix(data, at)
        if size < PREFIX_BYTES + 14:  # the smallest message of format 0
            raise ApiError(
                ErrorCode.CORRUPT_MESSAGE,
                f"Record size {size - PREFIX_BYTES} is less than the minimum record overhead (14)",
            )
        if at + size > len(data):
            return
        yield data[at : at + size]
        at += size


def checksum_of(batch: bytes) -> int:
    """Return the CRC-32C that the batch must have."""
    return int(google_crc32c.value(batch[_CHECKED_FROM:]))


def content_of(batch: bytes, header: BatchHeader) -> bytes:
    """Return the bytes of a batch's records, decompressed.

    Raises:
        ApiError: UNKNOWN_SERVER_ERROR; the batch is malformed.
    """
    data = batch[HEADER_BYTES:]
    if header.codec is Codec.NONE:
        return data
    try:
        return decompress(header.codec, data)
    except DecompressionError as error:
        # Kafka returns this error, too. Its producers do not send such batches.
        raise ApiError(ErrorCode.UNKNOWN_SERVER_ERROR, str(error)) from error


def records_of(batch: bytes, header: BatchHeader | None = None) -> Iterator[Record]:
    """Yield a batch's records, decompressed.

    Raises:
        ApiError: INVALID_RECORD or UNKNOWN_SERVER_ERROR; the batch is malformed.
    """
    header = header or parse_header(batch)
    return records_in(content_of(batch, header), header)


def records_in(data: bytes, header: BatchHeader) -> Iterator[Record]:
    """Yield the records of a batch with this header, of which `data` is the content.

    Raises:
        ApiError: INVALID_RECORD; the content is malformed.
    """
    for record in parse_records(
        data, header.record_count, header.base_offset, header.base_timestamp
    ):
        if header.has_log_append_time:
            record = record._replace(timestamp=header.max_timestamp)
        yield record


def decode_batches(data: bytes) -> Iterator[tuple[BatchHeader, Iterator[Record]]]:
    """Yield the header and the records of each whole batch of a log."""
    for batch in split_batches(data):
        header = parse_header(batch)
        yield header, records_of(batch, header)


def encode_batch(
    records: Sequence[NewRecord],
    *,
    base_offset: int = 0,
    leader_epoch: int = -1,
    codec: Codec = Codec.NONE,
    log_append_time: int | None = None,
    producer_id: int = NO_PRODUCER_ID,
    producer_epoch: int = NO_PRODUCER_EPOCH,
    base_sequence: int = NO_SEQUENCE,
    attributes: int = 0,
) -> bytes:
    """Return a batch; `records` must not be empty. Offsets are consecutive from `base_offset`."""
    base_timestamp = records[0].timestamp
    body = b"".join(
        encode_record(record, delta, record.timestamp - base_timestamp)
        for delta, record in enumerate(records)
    )
    attributes |= int(codec)
    max_timestamp = max(record.timestamp for record in records)
    if log_append_time is not None:
        attributes |= LOG_APPEND_TIME_FLAG
        max_timestamp = log_append_time
    return assemble(
        BatchHeader(
            base_offset,
            0,
            leader_epoch,
            MAGIC_V2,
            0,
            attributes,
            len(records) - 1,
            base_timestamp,
            max_timestamp,
            producer_id,
            producer_epoch,
            base_sequence,
            len(records),
        ),
        compress(codec, body),
    )


def assemble(header: BatchHeader, body: bytes) -> bytes:
    """Return the batch with this (compressed) body; length and checksum are computed."""
    length = HEADER_BYTES - PREFIX_BYTES + len(body)
    batch = HEADER.pack(*header._replace(length=length, crc=0)) + body
    return batch[:_CRC_AT] + _CRC.pack(checksum_of(batch)) + batch[_CHECKED_FROM:]


def place(
    batch: bytes, header: BatchHeader, *, base_offset: int, leader_epoch: int, max_timestamp: int,
    attributes: int,
) -> bytes:  # fmt: skip
    """Return a batch with these fields. The bytes of its records do not change."""
    placed = _PREFIX.pack(base_offset, header.length) + leader_epoch.to_bytes(4, "big", signed=True)
    if max_timestamp == header.max_timestamp and attributes == header.attributes:
        return placed + batch[MAGIC_AT:]  # The checksum covers neither offset nor epoch.
    changed = bytearray(placed + batch[MAGIC_AT:])
    _ATTRIBUTES.pack_into(changed, _CHECKED_FROM, attributes)
    _TIMES.pack_into(changed, _TIMES_AT, header.base_timestamp, max_timestamp)
    _CRC.pack_into(changed, _CRC_AT, checksum_of(bytes(changed)))
    return bytes(changed)


__all__ = ["NO_TIMESTAMP", "BatchHeader", "NewRecord", "Record"]
