"""Records of two brokers count as equal if only compressed bytes or log append times differ."""

from __future__ import annotations

import base64
import gzip

from data_plane.records.batch import (
    HEADER_BYTES,
    NewRecord,
    assemble,
    encode_batch,
    parse_header,
)
from data_plane.records.compression import Codec
from tests.fidelity.canonical_records import canonical_records

RECORDS = [NewRecord(1000 + number, b"k", b"value" * number) for number in range(3)]


def canonical(data: bytes) -> object:
    return canonical_records(base64.b64encode(data).decode())


def test_contents_and_codecs_are_compared_and_compressed_bytes_are_not() -> None:
    batch = encode_batch(RECORDS, codec=Codec.GZIP)
    content = gzip.decompress(batch[HEADER_BYTES:])
    again = assemble(parse_header(batch), gzip.compress(content, compresslevel=1))
    assert again != batch
    assert canonical(again) == canonical(batch)
    assert canonical(encode_batch(RECORDS[:2], codec=Codec.GZIP)) != canonical(batch)
    assert canonical(encode_batch(RECORDS, codec=Codec.LZ4)) != canonical(batch)


def test_log_append_times_are_ignored_and_create_times_are_compared() -> None:
    appended = [encode_batch(RECORDS, log_append_time=time) for time in (5, 6)]
    assert canonical(appended[0]) == canonical(appended[1])
    created = [encode_batch([record._replace(timestamp=7)]) for record in RECORDS[:2]]
    assert canonical(created[0]) != canonical(created[1])
    assert canonical(appended[0]) != canonical(encode_batch(RECORDS))


def test_an_incomplete_batch_at_the_end_is_compared() -> None:
    batch = encode_batch(RECORDS)
    assert canonical(batch + batch[:20]) != canonical(batch)
