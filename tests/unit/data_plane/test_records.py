"""Record batches and message sets: what is accepted, and what is stored."""

from __future__ import annotations

import os
import struct
import tracemalloc
from collections.abc import Iterator

import pytest

from bridgehead.kafka_wire.errors import ApiError, ErrorCode
from bridgehead.slices import in_slices
from data_plane.records import validation
from data_plane.records.batch import (
    BatchHeader,
    NewRecord,
    Record,
    assemble,
    decode_batches,
    encode_batch,
    parse_header,
    records_in,
    records_of,
    split_batches,
)
from data_plane.records.compression import (
    Codec,
    DecompressionError,
    compress,
    decompress,
    with_correct_lz4_checksum,
)
from data_plane.records.down_conversion import for_version
from data_plane.records.message_sets import encode_message_set, messages_of, parse_message
from data_plane.records.validation import (
    RecordsRejectedError,
    Rules,
    check_for_version,
    validate,
)
from tests.unit.turns import turns_during

NOW = 1_700_000_000_000
RULES = Rules("topic-0", max_message_bytes=1_000_000)
RECORDS = [
    NewRecord(NOW, b"key", b"value", ((b"header", b"content"), (b"empty", None))),
    NewRecord(NOW - 5, None, None),
    NewRecord(NOW + 70_000, b"", b"x" * 300),
]


def validated(data: bytes, rules: Rules = RULES, next_offset: int = 100) -> list[Record]:
    batches = validate(data, rules, next_offset=next_offset, leader_epoch=7, now_ms=NOW)
    return [record for batch in batches for record in records_of(batch.data)]


def rejection(data: bytes, rules: Rules = RULES) -> ErrorCode:
    with pytest.raises(ApiError) as rejected:
        validated(data, rules)
    return rejected.value.error


@pytest.mark.parametrize("codec", list(Codec))
def test_records_are_unchanged_after_compression_with_every_codec(codec: Codec) -> None:
    data = encode_batch(RECORDS, codec=codec)
    assert validated(data) == [
        Record(100 + number, *record) for number, record in enumerate(RECORDS)
    ]


@pytest.mark.parametrize("codec", list(Codec))
def test_the_leader_keeps_the_producers_bytes_and_changes_only_offset_and_epoch(
    codec: Codec,
) -> None:
    data = encode_batch(RECORDS, codec=codec)
    (stored,) = validate(data, RULES, next_offset=100, leader_epoch=7, now_ms=NOW)
    assert stored.data[:8] == struct.pack(">q", 100)
    assert stored.data[8:12] + stored.data[16:] == data[8:12] + data[16:]
    assert stored.header.leader_epoch == 7


def test_a_damaged_byte_anywhere_after_the_checksum_is_detected() -> None:
    data = encode_batch(RECORDS)
    for at in range(21, len(data)):
        damaged = data[:at] + bytes([data[at] ^ 1]) + data[at + 1 :]
        assert rejection(damaged) is ErrorCode.CORRUPT_MESSAGE


@pytest.mark.parametrize("codec", [Codec.GZIP, Codec.SNAPPY, Codec.LZ4, Codec.ZSTD])
def test_decompression_stops_at_its_limit(codec: Codec) -> None:
    data = compress(codec, bytes(10_000_000))
    assert len(data) < 500_000
    with pytest.raises(DecompressionError):
        decompress(codec, data, 9_999_999)
    assert decompress(codec, data, 10_000_000) == bytes(10_000_000)


@pytest.mark.parametrize("codec", [Codec.GZIP, Codec.SNAPPY, Codec.LZ4, Codec.ZSTD])
def test_damaged_compressed_bytes_are_an_error(codec: Codec) -> None:
    data = compress(codec, os.urandom(1000))
    for damaged in (b"", b"\xff", data[:-10], data[: len(data) // 2]):
        with pytest.raises(DecompressionError):
            decompress(codec, damaged)


def test_append_time_replaces_the_producers_timestamps() -> None:
    rules = Rules("topic-0", 1_000_000, uses_append_time=True)
    assert {record.timestamp for record in validated(encode_batch(RECORDS), rules)} == {NOW}


def test_a_compacted_topic_rejects_records_without_a_key_one_by_one() -> None:
    rules = Rules("topic-0", 1_000_000, is_compacted=True)
    with pytest.raises(RecordsRejectedError) as rejected:
        validated(encode_batch(RECORDS), rules)
    assert rejected.value.error is ErrorCode.INVALID_RECORD
    assert [record.batch_index for record in rejected.value.records] == [1]


def test_timestamps_outside_the_topics_limits_are_rejected_one_by_one() -> None:
    rules = Rules("topic-0", 1_000_000, before_max_ms=4, after_max_ms=60_000)
    with pytest.raises(RecordsRejectedError) as rejected:
        validated(encode_batch(RECORDS), rules)
    assert rejected.value.error is ErrorCode.INVALID_TIMESTAMP
    assert [record.batch_index for record in rejected.value.records] == [1, 2]


@pytest.mark.parametrize("magic", [1, 2])
def test_a_producer_must_not_set_the_flag_of_append_times(magic: int) -> None:
    """As in Kafka, only a topic with message.timestamp.type=LogAppendTime rejects such records."""
    data = encode_message_set([Record(0, NOW, b"k", b"v")], 1, Codec.NONE, NOW)
    if magic == 2:
        data = assemble(
            parse_header(encode_batch(RECORDS))._replace(attributes=8), encode_batch(RECORDS)[61:]
        )
    assert rejection(data, Rules("topic-0", 1_000_000, uses_append_time=True)) is (
        ErrorCode.INVALID_TIMESTAMP
    )
    assert validated(data)


def test_a_timestamp_beyond_64_bits_is_rejected() -> None:
    """A timestamp is the sum of two fields. A batch with a larger sum could not be stored."""
    header = parse_header(encode_batch(RECORDS))._replace(base_timestamp=2**63 - 1)
    assert rejection(assemble(header, encode_batch(RECORDS)[61:])) is ErrorCode.INVALID_TIMESTAMP


def test_a_batch_larger_than_the_limit_is_rejected() -> None:
    data = encode_batch(RECORDS)
    assert rejection(data, Rules("topic-0", len(data) - 1)) is ErrorCode.MESSAGE_TOO_LARGE
    assert len(validated(data, Rules("topic-0", len(data)))) == 3


def test_headers_that_contradict_the_records_are_invalid() -> None:
    header = parse_header(encode_batch(RECORDS))
    for wrong in (
        header._replace(base_offset=1),
        header._replace(record_count=2),
        header._replace(record_count=0),
        header._replace(last_offset_delta=-1),
        header._replace(record_count=4, last_offset_delta=3),
        header._replace(attributes=0x20),
        header._replace(producer_id=5, base_sequence=-1),
    ):
        body = encode_batch(RECORDS)[61:]
        assert rejection(assemble(wrong, body)) is ErrorCode.INVALID_RECORD


def test_equal_compressed_records_are_rejected_at_the_second_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A million of them fit into a batch of less than 1 KB."""
    read = []

    def counted(data: bytes, header: BatchHeader) -> Iterator[Record]:
        for record in records_in(data, header):
            read.append(record.offset)
            yield record

    monkeypatch.setattr(validation, "records_in", counted)
    count = 1_000_000
    header = parse_header(encode_batch([NewRecord(NOW, b"", b"")], codec=Codec.ZSTD))
    body = compress(Codec.ZSTD, bytes.fromhex("0c000000010100") * count)
    data = assemble(header._replace(record_count=count, last_offset_delta=count - 1), body)
    assert len(data) < 1_000
    assert rejection(data) is ErrorCode.INVALID_RECORD
    assert read == [0, 0]


def test_a_number_of_a_record_has_at_most_32_bits() -> None:
    """Java's readVarint rejects numbers of more than five bytes. Only timestamps have 64 bits."""
    header = parse_header(encode_batch([NewRecord(NOW, None, b"")]))
    fields = bytes.fromhex("000000 818080808000 01 00".replace(" ", ""))
    body = bytes([2 * len(fields)]) + fields
    assert rejection(assemble(header, body)) is ErrorCode.INVALID_RECORD
    shorter = bytes.fromhex("000000 8180808000 01 00".replace(" ", ""))
    assert validated(assemble(header, bytes([2 * len(shorter)]) + shorter))[0].key is None


def test_a_topics_codec_replaces_the_codec_of_the_producer() -> None:
    rules = Rules("topic-0", 1_000_000, compression_type="zstd")
    (stored,) = validate(
        encode_batch(RECORDS, codec=Codec.GZIP), rules, next_offset=5, leader_epoch=0, now_ms=NOW
    )
    assert stored.header.codec is Codec.ZSTD
    assert [record[1:] for record in records_of(stored.data)] == [tuple(r) for r in RECORDS]


@pytest.mark.parametrize("magic", [0, 1])
@pytest.mark.parametrize("codec", [Codec.NONE, Codec.GZIP, Codec.SNAPPY, Codec.LZ4])
def test_message_sets_are_stored_as_batches(magic: int, codec: Codec) -> None:
    records = [Record(n, NOW if magic else -1, b"k", b"v%d" % n) for n in range(3)]
    data = encode_message_set(records, magic, codec)
    assert validated(data) == [record._replace(offset=100 + record.offset) for record in records]
    (stored,) = validate(data, RULES, next_offset=0, leader_epoch=0, now_ms=NOW)
    assert stored.header.codec is codec


def test_a_message_with_a_wrong_checksum_is_corrupt() -> None:
    data = encode_message_set([Record(0, NOW, b"k", b"v")], 1, Codec.NONE)
    assert rejection(data[:-1] + b"w") is ErrorCode.CORRUPT_MESSAGE


@pytest.mark.parametrize(("version", "magic"), [(0, 0), (1, 0), (2, 1), (3, 1)])
@pytest.mark.parametrize("codec", [Codec.NONE, Codec.GZIP, Codec.LZ4])
def test_old_consumers_get_message_sets(version: int, magic: int, codec: Codec) -> None:
    data = encode_batch(RECORDS, base_offset=50, codec=codec)
    converted = for_version(version, data, 50)
    messages = map(parse_message, split_batches(converted))
    records = [record for message in messages for record in messages_of(message)]
    assert [record.offset for record in records] == [50, 51, 52][: len(records)]
    assert [record.value for record in records] == [r.value for r in RECORDS][: len(records)]
    assert converted[16] == magic


def test_converted_records_are_padded_to_the_size_before_the_conversion() -> None:
    """Kafka sends the size of the records before it converts them."""
    data = b"".join(encode_batch(RECORDS, base_offset=at) for at in (50, 53, 56))
    for offset in (50, 52, 58):
        converted = for_version(1, data, offset)
        assert len(converted) == len(data)
        messages = [parse_message(batch) for batch in split_batches(converted)]
        assert [message.offset for message in messages] == list(
            range(offset, offset + len(messages))
        )
        assert messages
    single = encode_batch([RECORDS[0]])
    assert len(for_version(3, single, 0)) == len(single)


def test_old_consumers_get_an_error_for_zstd() -> None:
    data = encode_batch(RECORDS, codec=Codec.ZSTD)
    assert for_version(10, data, 0) == data
    # In versions 4 to 9 the topic's compression.type decides (broker_proxy/apis/records/fetch.py).
    assert for_version(4, data, 0) == data
    for version in (0, 3):
        with pytest.raises(ApiError) as rejected:
            for_version(version, data, 0)
        assert rejected.value.error is ErrorCode.UNSUPPORTED_COMPRESSION_TYPE


def test_each_version_of_produce_accepts_the_formats_and_codecs_that_kafka_accepts() -> None:
    batch = encode_batch(RECORDS)
    zstd = encode_batch(RECORDS, codec=Codec.ZSTD)
    old = encode_message_set([Record(0, NOW, b"k", b"v")], 1, Codec.NONE)
    check_for_version(2, old + old)
    check_for_version(3, batch)
    check_for_version(7, zstd)
    for version, data, error in (
        (3, b"", ErrorCode.INVALID_RECORD),
        (3, old, ErrorCode.INVALID_RECORD),
        (3, batch + batch, ErrorCode.INVALID_RECORD),
        (6, zstd, ErrorCode.UNSUPPORTED_COMPRESSION_TYPE),
    ):
        with pytest.raises(ApiError) as rejected:
            check_for_version(version, data)
        assert rejected.value.error is error


def test_a_wrong_header_checksum_of_an_lz4_frame_is_corrected() -> None:
    frame = compress(Codec.LZ4, b"content" * 10)
    end = 14 if frame[4] & 8 else 6
    wrong = frame[:end] + bytes([frame[end] ^ 0xFF]) + frame[end + 1 :]
    with pytest.raises(DecompressionError):
        decompress(Codec.LZ4, wrong)
    assert decompress(Codec.LZ4, with_correct_lz4_checksum(wrong)) == b"content" * 10


def test_old_consumers_get_lz4_frames_with_the_checksum_that_they_expect() -> None:
    """In format 0 the checksum includes the frame's magic, and consumers verify it (KAFKA-3160)."""
    data = encode_batch(RECORDS * 100, codec=Codec.LZ4)
    frames = {}
    for version in (0, 2):
        (message,) = map(parse_message, split_batches(for_version(version, data, 0)))
        frames[version] = message.value or b""
    with pytest.raises(DecompressionError):
        decompress(Codec.LZ4, frames[0])
    assert decompress(Codec.LZ4, frames[2])
    # XXH32 of 04 22 4d 18 74 40, the header with its magic, is 0xeb43f69f; f6 is the checksum.
    assert frames[0][:7].hex() == "04224d187440f6"


def test_random_bytes_raise_only_api_errors() -> None:
    batch = encode_batch(RECORDS, codec=Codec.GZIP)
    for _ in range(300):
        for data in (os.urandom(200), batch[:61] + os.urandom(100), os.urandom(21) + batch[21:]):
            try:
                validated(data)
            except ApiError:
                continue


def test_decoding_yields_every_whole_batch() -> None:
    data = encode_batch(RECORDS) + encode_batch(RECORDS, base_offset=3)
    assert [header.base_offset for header, _ in decode_batches(data + data[:50])] == [0, 3]


def _many(count: int, codec: Codec = Codec.ZSTD) -> bytes:
    """Return a small batch of many records without key and value."""
    return encode_batch([NewRecord(NOW, None, None)] * count, codec=codec)


@pytest.mark.parametrize("compression", ["producer", "gzip"])
async def test_others_run_while_a_batch_of_many_records_is_validated(compression: str) -> None:
    rules = Rules("topic-0", max_message_bytes=1_000_000, compression_type=compression)
    steps = validation.validating(_many(50_000), rules, next_offset=4, leader_epoch=7, now_ms=NOW)
    (batch,), turns = await turns_during(in_slices(steps))
    assert (batch.header.base_offset, batch.header.record_count) == (4, 50_000)
    assert turns >= 10


def test_a_batch_is_validated_without_keeping_its_records() -> None:
    """A batch of the allowed size has up to 1,400,000 records."""
    data = _many(100_000)
    tracemalloc.start()
    validate(data, RULES, next_offset=100, leader_epoch=7, now_ms=NOW)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 8_000_000  # with all records: 30 MB


def test_not_every_rejected_record_is_reported() -> None:
    rules = Rules("topic-0", max_message_bytes=1_000_000, is_compacted=True)
    with pytest.raises(RecordsRejectedError, match="due to 3000 record errors") as rejected:
        validate(_many(3_000), rules, next_offset=0, leader_epoch=0, now_ms=NOW)
    assert [error.batch_index for error in rejected.value.records] == list(range(1_000))


def test_headers_of_a_record_are_limited() -> None:
    header = (b"", None)
    fits = encode_batch([NewRecord(NOW, None, None, (header,) * 100_000)])
    assert len(validated(fits)[0].headers) == 100_000
    assert rejection(encode_batch([NewRecord(NOW, None, None, (header,) * 100_001)])) is (
        ErrorCode.INVALID_RECORD
    )


@pytest.mark.parametrize("codec", [Codec.NONE, Codec.GZIP])
def test_messages_of_the_old_formats_are_limited(codec: Codec) -> None:
    """They are converted, so all of them are in memory."""
    rules = Rules("topic-0", max_message_bytes=10_000_000)
    records = [Record(number, NOW, None, None) for number in range(100_001)]
    assert rejection(encode_message_set(records, 1, codec), rules) is ErrorCode.MESSAGE_TOO_LARGE
    assert len(validated(encode_message_set(records[:2_000], 1, codec), rules)) == 2_000


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (_many(1, Codec.NONE), False),
        (_many(1), True),
        (_many(3_000, Codec.NONE), True),
        (encode_message_set([Record(0, NOW, None, None)], 1, Codec.NONE), True),
        (b"", False),
    ],
)
def test_batches_that_may_take_long_are_known_before_they_are_read(
    data: bytes, expected: bool
) -> None:
    assert validation.takes_long(data) is expected
