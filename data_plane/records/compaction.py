"""Removes from record batches what compaction does not keep. Pure. Source: Kafka's `LogCleaner`.

The last record of each key stays. If it has no value (a tombstone), it stays only for
`delete.retention.ms` after the first compaction that keeps it. That compaction gives its batch a
delete horizon (KIP-534). Offsets do not change. The last batch of each active producer stays, if
need be without records, so that the producer's sequence is known after a restart.
"""

from __future__ import annotations

from collections.abc import Iterable
from hashlib import blake2b
from typing import Final, NamedTuple

from data_plane.records.batch import (
    CODEC_MASK,
    DELETE_HORIZON_FLAG,
    BatchHeader,
    assemble,
    parse_header,
    records_of,
)
from data_plane.records.compression import compress
from data_plane.records.record import NewRecord, Record, encode_record

_DIGEST_BYTES: Final = 16
KEY_BYTES: Final = 200  # the approximate memory of one key in the table


class LastOffsets:
    """The last offset of each key in a range of the log: at most `limit` keys, by their digests."""

    def __init__(self, first_offset: int, limit: int) -> None:
        self._first_offset = first_offset
        self._limit = limit
        self._offsets: dict[bytes, int] = {}
        self.end_offset = first_offset  # records from here on are not in the table

    def __len__(self) -> int:
        return len(self._offsets)

    def add(self, batch: bytes) -> bool:
        """Add a batch's keys; return False if there was no room for all of them."""
        header = parse_header(batch)
        for record in records_of(batch, header):
            if record.offset < self._first_offset or record.key is None:
                continue
            digest = _digest(record.key)
            if digest not in self._offsets and len(self._offsets) >= self._limit:
                return False
            self.put(digest, record.offset)
            self.end_offset = record.offset + 1
        self.end_offset = max(self.end_offset, header.next_offset)
        return True

    def put(self, digest: bytes, offset: int) -> None:
        """Store the offset of a key."""
        self._offsets[digest] = offset

    def has_later(self, record: Record) -> bool:
        """Return whether a later record in the table has the key of `record`."""
        if record.offset >= self.end_offset or record.key is None:
            return False
        return self.is_later(self._offsets.get(_digest(record.key), -1), record.offset)

    def is_later(self, known_offset: int, offset: int) -> bool:
        """Return whether the table's offset for a key, `found` (-1: none), is after `offset`."""
        return known_offset > offset


def _digest(key: bytes) -> bytes:
    return blake2b(key, digest_size=_DIGEST_BYTES).digest()


class Terms(NamedTuple):
    """When tombstones are removed, and the last offset of each active producer."""

    now_ms: int
    delete_retention_ms: int
    last_of_producer: dict[int, int]


def compacted(batch: bytes, table: LastOffsets, terms: Terms) -> bytes:
    """Return the batch without superseded records and old tombstones; b"" if nothing stays.

    Records without a key are removed, as in Kafka.

    Raises:
        ApiError: the batch is malformed.
    """
    header = parse_header(batch)
    horizon = header.base_timestamp if header.attributes & DELETE_HORIZON_FLAG else None
    ends_tombstones = horizon is not None and terms.now_ms >= horizon
    records = list(records_of(batch, header))
    kept = [
        record
        for record in records
        if record.offset >= table.end_offset
        or (
            record.key is not None
            and not table.has_later(record)
            and not (record.value is None and ends_tombstones)
        )
    ]
    if not kept:
        is_last = terms.last_of_producer.get(header.producer_id) == header.last_offset
        return _without_records(header) if is_last else b""
    is_new = horizon is None and any(record.value is None for record in kept)
    if is_new:
        horizon = terms.now_ms + terms.delete_retention_ms
    elif len(kept) == len(records):
        return batch
    return _rewritten(header, kept, horizon)


def _rewritten(header: BatchHeader, kept: list[Record], horizon: int | None) -> bytes:
    """Return the batch with the records `kept`. Its base timestamp stores `horizon`, if given."""
    base = kept[0].timestamp if horizon is None else horizon
    attributes = header.attributes | (0 if horizon is None else DELETE_HORIZON_FLAG)
    newest = max(record.timestamp for record in kept)
    changed = header._replace(
        attributes=attributes,
        base_timestamp=base,
        max_timestamp=header.max_timestamp if header.has_log_append_time else newest,
        record_count=len(kept),
    )
    return assemble(changed, compress(header.codec, _encoded(kept, header.base_offset, base)))


def _encoded(records: Iterable[Record], base_offset: int, base_timestamp: int) -> bytes:
    return b"".join(
        encode_record(
            NewRecord(record.timestamp, record.key, record.value, record.headers),
            record.offset - base_offset,
            record.timestamp - base_timestamp,
        )
        for record in records
    )


def _without_records(header: BatchHeader) -> bytes:
    """Return a batch with this header but no records, as Kafka's `writeEmptyHeader` does."""
    attributes = header.attributes & ~(CODEC_MASK | DELETE_HORIZON_FLAG)
    return assemble(
        header._replace(attributes=attributes, base_timestamp=header.max_timestamp, record_count=0),
        b"",
    )
