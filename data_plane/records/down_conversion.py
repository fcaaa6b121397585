"""Converts batches of format 2 for consumers that only know message sets (KIP-283).

Headers are lost, as in Kafka. A batch keeps its codec.
"""

from __future__ import annotations

import struct
from typing import Final

from bridgehead.kafka_wire.errors import ApiError, ErrorCode
from data_plane.records.batch import HEADER_BYTES, parse_header, records_of, split_batches
from data_plane.records.compression import Codec
from data_plane.records.message_sets import encode_message_set

_FORMAT_1_FROM: Final = 2
_FORMAT_2_FROM: Final = 4
_PREFIX: Final = struct.Struct(">qi")


def for_version(version: int, data: bytes, fetch_offset: int) -> bytes:
    """Return the batches as a consumer with this version of Fetch reads them.

    Below version 4 the batches are converted. Kafka announces the size of `data` before it converts
    them. So a longer result is cut to this size, and a shorter one is filled up with an incomplete
    batch, which consumers ignore. If the first converted batch alone is longer than `data`, the
    result is that whole batch.

    Raises:
        ApiError: UNSUPPORTED_COMPRESSION_TYPE; a batch to convert is compressed with zstd.
    """
    if version >= _FORMAT_2_FROM:
        return data
    magic = 1 if version >= _FORMAT_1_FROM else 0
    parts = []
    for batch in split_batches(data):
        header = parse_header(batch)
        if header.is_control:
            continue
        _check_codec(header.codec)
        records = list(records_of(batch, header))
        if header.codec is Codec.NONE:  # Uncompressed messages can be omitted one by one.
            records = [record for record in records if record.offset >= fetch_offset]
        if records:
            time = header.max_timestamp if header.has_log_append_time else None
            parts.append(encode_message_set(records, magic, header.codec, time))
    if not parts:
        return b""
    size = max(len(data), len(parts[0]))
    converted = b"".join(parts)[:size]
    return converted + _filling(size - len(converted))


def _filling(size: int) -> bytes:
    """Return the beginning of a batch that is longer than `size`."""
    prefix = _PREFIX.pack(-1, max(size + 1, HEADER_BYTES))
    return prefix[:size].ljust(size, b"\0")


def _check_codec(codec: Codec) -> None:
    if codec is Codec.ZSTD:
        raise ApiError(ErrorCode.UNSUPPORTED_COMPRESSION_TYPE)
