"""Validates what a producer sends and assigns offsets, as Kafka's leader does.

Source: `UnifiedLog.analyzeAndValidateRecords` and `LogValidator` of Kafka 3.9, and observations of
a live broker. The result is always format 2: formats 0 and 1 are converted. A batch of format 2
keeps the bytes of its records unless the topic's `compression.type` names another codec.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import islice
from typing import Final, NamedTuple

from bridgehead.kafka_wire.errors import ApiError, ErrorCode
from bridgehead.slices import Steps, at_once
from data_plane.records.batch import (
    HEADER_BYTES,
    LOG_APPEND_TIME_FLAG,
    MAGIC_AT,
    MAGIC_V2,
    NO_PRODUCER_ID,
    BatchHeader,
    assemble,
    checksum_of,
    content_of,
    encode_batch,
    parse_header,
    place,
    records_in,
    split_batches,
)
from data_plane.records.compression import Codec, compress
from data_plane.records.message_sets import (
    MESSAGES_MAX,
    Message,
    codec_of,
    messages_of,
    parse_message,
)
from data_plane.records.record import NO_TIMESTAMP, NewRecord, Record, encode_record

_CODECS: Final = {codec.name.lower(): codec for codec in Codec} | {"uncompressed": Codec.NONE}
_PRODUCERS_CODEC: Final = "producer"
_ERRORS_SHOWN_MAX: Final = 3
# Kafka reports every rejected record (docs/differences.md).
ERRORS_MAX: Final = 1_000
_RECORDS_PER_STEP: Final = 64
_SMALL_BYTES: Final = 16 * 1024  # of records without compression
_TIMESTAMP_MAX: Final = 2**63 - 1
# The first version of Produce that accepts only format 2, and the first that accepts zstd.
_FORMAT_2_FROM: Final = 3
_ZSTD_FROM: Final = 7


class RecordError(NamedTuple):
    """One rejected record: its position in the batch, and why."""

    batch_index: int
    text: str


class RecordsRejectedError(ApiError):
    """A batch is rejected because of some of its records (KIP-467)."""

    def __init__(self, error: ErrorCode, message: str, records: Sequence[RecordError]) -> None:
        super().__init__(error, message)
        self.records = tuple(records)


@dataclass(frozen=True, slots=True)
class Rules:
    """What a topic's configs demand."""

    partition: str  # such as topic-0, for error messages
    max_message_bytes: int
    is_compacted: bool = False
    uses_append_time: bool = False
    before_max_ms: int = 2**63 - 1
    after_max_ms: int = 2**63 - 1
    compression_type: str = _PRODUCERS_CODEC


class Batch(NamedTuple):
    """A validated batch of format 2 as it is stored."""

    header: BatchHeader
    data: bytes


def check_for_version(version: int, records: bytes) -> None:
    """Check that a version of Produce permits the records (`ProduceRequest.validateRecords`).

    Raises:
        ApiError: the version does not permit them, or the first batch is malformed.
    """
    if version < _FORMAT_2_FROM:
        return
    request = f"Produce requests with version {version}"
    batches = split_batches(records)
    first = next(batches, None)
    if first is None:
        raise _invalid(f"{request} must have at least one record batch per partition")
    if first[MAGIC_AT] != MAGIC_V2:
        raise _invalid(f"{request} are only allowed to contain record batches with magic version 2")
    if len(first) < HEADER_BYTES:
        raise ApiError(ErrorCode.CORRUPT_MESSAGE)
    codec = parse_header(first).codec_number
    if version < _ZSTD_FROM and codec not in Codec.__members__.values():
        raise ApiError(ErrorCode.UNKNOWN_SERVER_ERROR)  # as in Kafka
    if version < _ZSTD_FROM and codec == Codec.ZSTD:
        raise ApiError(
            ErrorCode.UNSUPPORTED_COMPRESSION_TYPE,
            f"{request} are not allowed to use ZStandard compression",
        )
    if next(batches, None) is not None:
        raise _invalid(f"{request} are only allowed to contain exactly one record batch per "
                       "partition")  # fmt: skip


def check_first_batch(records: bytes) -> None:
    """Check the first batch's size and format, as Kafka does to see if it is transactional.

    Raises:
        ApiError: CORRUPT_MESSAGE.
    """
    first = next(split_batches(records), None)
    if first is not None and first[MAGIC_AT] > MAGIC_V2:
        magic = int.from_bytes(first[MAGIC_AT : MAGIC_AT + 1], signed=True)
        raise ApiError(ErrorCode.CORRUPT_MESSAGE, f"Invalid magic found in record: {magic}")


def takes_long(records: bytes) -> bool:
    """Return whether `validate` may take longer than some milliseconds.

    A small compressed batch may expand to millions of records.
    """
    if len(records) > _SMALL_BYTES:
        return True
    if len(records) < HEADER_BYTES or records[MAGIC_AT] != MAGIC_V2:
        return bool(records)
    return parse_header(records).codec_number != Codec.NONE


def place_validated(batch: Batch, next_offset: int, leader_epoch: int) -> Batch:
    """Return a validated batch with other offsets and another leader epoch."""
    header, data = batch
    stored = place(
        data, header, base_offset=next_offset, leader_epoch=leader_epoch,
        max_timestamp=header.max_timestamp, attributes=header.attributes,
    )  # fmt: skip
    return Batch(parse_header(stored), stored)


def validate(
    records: bytes, rules: Rules, *, next_offset: int, leader_epoch: int, now_ms: int
) -> list[Batch]:
    """Return the batches to append, with offsets from `next_offset` on.

    Raises:
        ApiError: the records are rejected as a whole.
    """
    return at_once(
        validating(
            records, rules, next_offset=next_offset, leader_epoch=leader_epoch, now_ms=now_ms
        )
    )


def validating(
    records: bytes, rules: Rules, *, next_offset: int, leader_epoch: int, now_ms: int
) -> Steps[list[Batch]]:
    """Return the steps of `validate`: a small batch may expand to millions of records."""
    sources = list(islice(split_batches(records), MESSAGES_MAX + 1))
    if len(sources) > MESSAGES_MAX:
        raise ApiError(ErrorCode.MESSAGE_TOO_LARGE, f"There are more than {MESSAGES_MAX} messages.")
    for number, source in enumerate(sources):
        if number % _RECORDS_PER_STEP == 0:
            yield None
        _check_source(source, rules)
    if not sources:
        return []
    magics = {source[MAGIC_AT] for source in sources}
    if len(magics) > 1:
        raise _invalid("The records have different formats.")
    if magics == {MAGIC_V2}:
        if len(sources) > 1:
            raise _invalid("Compressed outer record has more than one batch")
        batch = yield from _validate_batch(sources[0], rules, next_offset, leader_epoch, now_ms)
    else:
        batch = yield from _convert(sources, rules, next_offset, leader_epoch, now_ms)
    _check_size(len(batch.data), rules)
    return [batch]


def _check_source(source: bytes, rules: Rules) -> None:
    magic = source[MAGIC_AT]
    if magic > MAGIC_V2:
        raise ApiError(ErrorCode.CORRUPT_MESSAGE, f"The records have the unknown format {magic}.")
    if magic < MAGIC_V2:
        _check_size(len(source), rules)
        if not parse_message(source).is_intact:
            raise _corrupt(rules)
        return
    if len(source) < HEADER_BYTES:
        raise _corrupt(rules)
    header = parse_header(source)
    if header.base_offset != 0:
        raise _invalid(
            f"The baseOffset of the record batch in the append to {rules.partition} should be 0, "
            f"but it is {header.base_offset}"
        )
    _check_size(len(source), rules)
    if header.crc != checksum_of(source):
        raise _corrupt(rules)


def _check_size(size: int, rules: Rules) -> None:
    if size > rules.max_message_bytes:
        raise ApiError(
            ErrorCode.MESSAGE_TOO_LARGE,
            f"The record batch size in the append to {rules.partition} is {size} bytes which "
            f"exceeds the maximum configured value of {rules.max_message_bytes}.",
        )


def _validate_batch(
    data: bytes, rules: Rules, next_offset: int, leader_epoch: int, now_ms: int
) -> Steps[Batch]:
    header = parse_header(data)
    _check_header(header, rules)
    plain = header._replace(attributes=header.attributes & ~LOG_APPEND_TIME_FLAG)
    content: bytes = yield partial(content_of, data, plain)
    newest = yield from _check_records(
        _in_order(records_in(content, plain)),
        *(rules, now_ms),
        says_append_time=header.has_log_append_time,
    )
    attributes = header.attributes & ~LOG_APPEND_TIME_FLAG
    if rules.uses_append_time:
        attributes, newest = attributes | LOG_APPEND_TIME_FLAG, now_ms
    target = _target_codec(rules, header.codec)
    if target is not header.codec:
        data = yield from _recompressed(header, records_in(content, plain), target)
        header = parse_header(data)
        attributes = (attributes & ~0x07) | int(target)
    stored = place(
        data, header, base_offset=next_offset, leader_epoch=leader_epoch, max_timestamp=newest,
        attributes=attributes,
    )  # fmt: skip
    return Batch(parse_header(stored), stored)


def _in_order(records: Iterable[Record]) -> Iterator[Record]:
    for number, record in enumerate(records):
        if record.offset != number:
            raise _invalid(f"Record {number} has the offset {record.offset} in its batch.")
        yield record


def _check_header(header: BatchHeader, rules: Rules) -> None:
    spanned, last = header.last_offset_delta + 1, header.last_offset
    where = f"in topic partition {rules.partition}."
    if spanned <= 0:
        raise _invalid(f"Batch has an invalid offset range: [{header.base_offset}, {last}] {where}")
    if header.record_count <= 0:
        raise _invalid(f"Invalid reported count for record batch: {header.record_count} {where}")
    if spanned != header.record_count:
        raise _invalid(
            f"Inconsistent batch offset range [{header.base_offset}, {last}] and count of records "
            f"{header.record_count} {where}"
        )
    if header.is_control:
        raise _invalid(f"Clients are not allowed to write control records {where}")
    if header.producer_id != NO_PRODUCER_ID and header.base_sequence < 0:
        raise _invalid(
            f"Invalid sequence number {header.base_sequence} in record batch with producerId "
            f"{header.producer_id} {where}"
        )
    if header.codec_number not in Codec.__members__.values():
        raise ApiError(ErrorCode.UNKNOWN_SERVER_ERROR)  # as in Kafka


def _check_records(
    records: Iterable[Record], rules: Rules, now_ms: int, *, says_append_time: bool
) -> Steps[int]:
    """Check keys and timestamps; return the newest timestamp. Reports the positions of bad records.

    `says_append_time`: the producer set LogAppendTime, which only brokers may set.
    """
    errors: list[RecordError] = []
    bad_count = 0
    has_bad_time = False
    newest_found = NO_TIMESTAMP
    oldest, newest = now_ms - rules.before_max_ms, now_ms + rules.after_max_ms
    shown = f"[{_as_int64(oldest)}, {_as_int64(newest)}]"
    # A record's timestamp, which is base plus delta, can exceed int64; it is then out of range.
    newest = min(newest, _TIMESTAMP_MAX)
    for index, record in enumerate(records):
        if index % _RECORDS_PER_STEP == 0:
            yield None
        newest_found = max(newest_found, record.timestamp)
        text = ""
        if rules.is_compacted and record.key is None:
            text = (
                "Compacted topic cannot accept message without key in topic partition "
                f"{rules.partition}"
            )
        elif (
            not rules.uses_append_time
            and record.timestamp != NO_TIMESTAMP
            and not oldest <= record.timestamp <= newest
        ):
            has_bad_time = True
            text = (
                f"Timestamp {record.timestamp} of message with offset {record.offset} is out "
                f"of range. The timestamp should be within {shown}"
            )
        elif says_append_time and (rules.uses_append_time or record.timestamp == NO_TIMESTAMP):
            has_bad_time = True
            text = (
                f"Invalid timestamp type in message {record.offset}. Producer should not set "
                "timestamp type to LogAppendTime."
            )
        if text:
            bad_count += 1
            if len(errors) < ERRORS_MAX:
                errors.append(RecordError(index, text))
    if has_bad_time:
        text = "One or more records have been rejected due to invalid timestamp"
        raise RecordsRejectedError(ErrorCode.INVALID_TIMESTAMP, text, errors)
    if errors:
        first = ", ".join(
            f"RecordError(batchIndex={error.batch_index}, message='{error.text}')"
            for error in errors[:_ERRORS_SHOWN_MAX]
        )
        raise RecordsRejectedError(
            ErrorCode.INVALID_RECORD,
            f"One or more records have been rejected due to {bad_count} record errors in total, "
            f"and only showing the first three errors at most: [{first}]",
            errors,
        )
    return newest_found


def _as_int64(value: int) -> int:
    """Return the value as Kafka shows it: Kafka's 64-bit sums overflow."""
    return (value + 2**63) % 2**64 - 2**63


def _target_codec(rules: Rules, source: Codec) -> Codec:
    if rules.compression_type == _PRODUCERS_CODEC:
        return source
    return _CODECS[rules.compression_type]


def _recompressed(header: BatchHeader, records: Iterable[Record], codec: Codec) -> Steps[bytes]:
    body = bytearray()
    for delta, record in enumerate(records):
        if delta % _RECORDS_PER_STEP == 0:
            yield None
        timestamp_delta = record.timestamp - header.base_timestamp
        body += encode_record(NewRecord(*record[1:]), delta, timestamp_delta)
    attributes = (header.attributes & ~0x07) | int(codec)
    compressed: bytes = yield partial(compress, codec, bytes(body))
    return assemble(header._replace(attributes=attributes), compressed)


def _convert(
    sources: Sequence[bytes], rules: Rules, next_offset: int, leader_epoch: int, now_ms: int
) -> Steps[Batch]:
    """Convert all messages of formats 0 and 1 to one batch of format 2."""
    messages = [parse_message(source) for source in sources]
    codec = _source_codec(messages)
    if codec is not Codec.NONE and len(messages) > 1:
        raise _invalid("Compressed outer record has more than one batch")
    records: list[Record] = yield partial(_all_records, messages)
    flagged = any(
        message.attributes & LOG_APPEND_TIME_FLAG for message in messages if message.magic
    )
    yield from _check_records(records, rules, now_ms, says_append_time=flagged)
    data: bytes = yield partial(
        encode_batch,
        [NewRecord(record.timestamp, record.key, record.value) for record in records],
        base_offset=next_offset,
        leader_epoch=leader_epoch,
        codec=_target_codec(rules, codec),
        log_append_time=now_ms if rules.uses_append_time else None,
    )
    return Batch(parse_header(data), data)


def _all_records(messages: Sequence[Message]) -> list[Record]:
    return [record for message in messages for record in messages_of(message)]


def _source_codec(messages: Sequence[Message]) -> Codec:
    """Return the codec of the last compressed message; NONE if no message is compressed."""
    codecs = [codec_of(message) for message in messages]
    return next((codec for codec in reversed(codecs) if codec is not Codec.NONE), Codec.NONE)


def _invalid(text: str) -> ApiError:
    return ApiError(ErrorCode.INVALID_RECORD, text)


def _corrupt(rules: Rules) -> ApiError:
    return ApiError(
        ErrorCode.CORRUPT_MESSAGE, f"Record is corrupt in topic partition {rules.partition}."
    )
