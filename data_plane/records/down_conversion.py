"""Converts batches of format 2 for consumers that only know message sets (KIP-283).

Headers are lost, as in Kafka. A batch keeps its codec.
"""

from __future__ import annotations

from typing import Final

from bridgehead.kafka_wire.errors import ApiError, ErrorCode
from data_plane.records.batch import parse_header, records_of, split_batches
from data_plane.records.compression import Codec
from data_plane.records.message_sets import encode_message_set

_ZSTD_FROM: Final = 10  # the first version of Fetch whose consumers know zstd
_FORMAT_1_FROM: Final = 2
_FORMAT_2_FROM: Final = 4


def for_version(version: int, data: bytes, fetch_offset: int) -> bytes:
    """Return the batches as a consumer with this version of Fetch reads them.

    Raises:
        ApiError: UNSUPPORTED_COMPRESSION_TYPE; a batch is compressed with zstd.
    """
    if version >= _ZSTD_FROM:
        return data
    if version >= _FORMAT_2_FROM:
        for batch in split_batches(data):
            _check_codec(parse_header(batch).codec)
        return data
    magic = 1 if version >= _FORMAT_1_FROM else 0
    parts = []
    for batch in split_batches(data):
        header = parse_header(batch)
        if header.is_control:
            continue
        _check_codec(header.codec)
        records = list(records_of(batch, header))
        if header.codec is Codec.NONE:  # A message is a batch of its own.
            records = [each for each in records if each.offset >= fetch_offset]
        if records:
            time = header.max_timestamp if header.has_log_append_time else None
            parts.append(encode_message_set(records, magic, header.codec, time))
    return b"".join(parts)


def _check_codec(codec: Codec) -> None:
    if codec is Codec.ZSTD:
        raise ApiError(ErrorCode.UNSUPPORTED_COMPRESSION_TYPE)
