"""Idempotent producers of one partition: sequences, duplicates, epochs. Pure. KIP-98, KIP-360.

As in Kafka 3.9, a producer that is not known may start with any sequence: its records may have been
deleted. UNKNOWN_PRODUCER_ID is therefore never returned.
"""

from __future__ import annotations

import struct
from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Final, NamedTuple

import google_crc32c

from bridgehead.kafka_wire.errors import ApiError, ErrorCode
from data_plane.records.batch import NO_PRODUCER_EPOCH, NO_PRODUCER_ID, NO_SEQUENCE, BatchHeader

BATCHES_KEPT: Final = 5  # max.in.flight.requests.per.connection of an idempotent producer
_SEQUENCE_MAX: Final = 2**31 - 1
_SNAPSHOT_VERSION: Final = 1
_SNAPSHOT_HEAD: Final = struct.Struct(">hIi")  # version, checksum, number of producers
_SNAPSHOT_CHECKED_FROM: Final = 6
# Producer id, epoch, last sequence, last offset, offset delta, timestamp, coordinator epoch,
# first offset of the current transaction.
_SNAPSHOT_ENTRY: Final = struct.Struct(">qhiqiqiq")
_NO_COORDINATOR: Final = -1
_NO_TRANSACTION: Final = -1


class AppendedBatch(NamedTuple):
    """What is remembered about a batch, to recognize it when it is sent again."""

    first_sequence: int
    last_sequence: int
    first_offset: int
    last_offset: int
    timestamp: int


@dataclass(slots=True)
class Producer:
    """One producer's last batches; `timestamp` is the largest timestamp of the newest batch."""

    epoch: int = NO_PRODUCER_EPOCH
    timestamp: int = -1
    batches: deque[AppendedBatch] = field(default_factory=lambda: deque(maxlen=BATCHES_KEPT))

    @property
    def last_sequence(self) -> int:
        """The sequence of the last record; -1 if there is none."""
        return self.batches[-1].last_sequence if self.batches else NO_SEQUENCE


class Producers:
    """The idempotent producers of one partition, by producer id."""

    __slots__ = ("by_id",)

    def __init__(self) -> None:
        self.by_id: dict[int, Producer] = {}

    def duplicate_of(self, header: BatchHeader) -> AppendedBatch | None:
        """Return the earlier append of the same batch, if it is one of the producer's last five."""
        producer = self.by_id.get(header.producer_id)
        if producer is None or producer.epoch != header.producer_epoch:
            return None
        sequences = (header.base_sequence, header.last_sequence)
        return next((batch for batch in producer.batches if batch[:2] == sequences), None)

    def check(self, header: BatchHeader, partition: str) -> None:
        """Check that a batch continues its producer's sequence.

        Raises:
            ApiError: INVALID_PRODUCER_EPOCH or OUT_OF_ORDER_SEQUENCE_NUMBER.
        """
        producer = self.by_id.get(header.producer_id)
        if header.producer_id == NO_PRODUCER_ID or producer is None:
            return
        what = f"producer {header.producer_id} at offset {header.base_offset} in partition"
        if header.producer_epoch < producer.epoch:
            raise ApiError(
                ErrorCode.INVALID_PRODUCER_EPOCH,
                f"Epoch of {what} {partition} is {header.producer_epoch}, which is smaller than "
                f"the last seen epoch {producer.epoch}",
            )
        if header.producer_epoch != producer.epoch:
            if header.base_sequence != 0:
                raise ApiError(
                    ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER,
                    f"Invalid sequence number for new epoch of {what} {partition}: "
                    f"{header.producer_epoch} (request epoch), {header.base_sequence} (seq. "
                    f"number), {producer.epoch} (current producer epoch)",
                )
            return
        last = producer.last_sequence
        follows = header.base_sequence == (0 if last == _SEQUENCE_MAX else last + 1)
        if not follows:
            raise ApiError(
                ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER,
                f"Out of order sequence number for {what} {partition}: {header.base_sequence} "
                f"(incoming seq. number), {last} (current end sequence number)",
            )

    def appended(self, header: BatchHeader) -> None:
        """Record a batch of the log. Calls must be in the order of the log."""
        if header.producer_id == NO_PRODUCER_ID or header.is_control:
            return
        producer = self.by_id.get(header.producer_id)
        if producer is None or producer.epoch != header.producer_epoch:
            producer = self.by_id[header.producer_id] = Producer(header.producer_epoch)
        producer.timestamp = header.max_timestamp
        producer.batches.append(
            AppendedBatch(
                header.base_sequence,
                header.last_sequence,
                header.base_offset,
                header.last_offset,
                header.max_timestamp,
            )
        )

    def expire(self, before_ms: int) -> None:
        """Forget producers whose newest batch has a timestamp up to `before_ms`."""
        gone = [idle for idle, state in self.by_id.items() if state.timestamp <= before_ms]
        for producer_id in gone:
            del self.by_id[producer_id]

    def snapshot(self) -> bytes:
        """Return the last batch of each producer, in the format of Kafka's `.snapshot` files."""
        entries = []
        for producer_id, producer in self.by_id.items():
            if not producer.batches:
                continue
            last = producer.batches[-1]
            entries.append(
                _SNAPSHOT_ENTRY.pack(
                    producer_id,
                    producer.epoch,
                    last.last_sequence,
                    last.last_offset,
                    last.last_offset - last.first_offset,
                    producer.timestamp,
                    _NO_COORDINATOR,
                    _NO_TRANSACTION,
                )
            )
        body = b"".join(entries)
        checked = struct.pack(">i", len(entries)) + body
        checksum = int(google_crc32c.value(checked))
        return _SNAPSHOT_HEAD.pack(_SNAPSHOT_VERSION, checksum, len(entries)) + body

    @classmethod
    def from_snapshot(cls, data: bytes) -> Producers | None:
        """Read a snapshot; None if it is damaged."""
        producers = cls()
        if len(data) < _SNAPSHOT_HEAD.size:
            return None
        version, checksum, count = _SNAPSHOT_HEAD.unpack_from(data)
        if version != _SNAPSHOT_VERSION or len(data) != (
            _SNAPSHOT_HEAD.size + count * _SNAPSHOT_ENTRY.size
        ):
            return None
        if checksum != int(google_crc32c.value(data[_SNAPSHOT_CHECKED_FROM:])):
            return None
        for entry in _entries(data):
            producer_id, epoch, sequence, offset, delta, timestamp, _, _ = entry
            first_sequence = (sequence - delta) % (_SEQUENCE_MAX + 1)
            batch = AppendedBatch(first_sequence, sequence, offset - delta, offset, timestamp)
            producers.by_id[producer_id] = Producer(epoch, timestamp, deque([batch], BATCHES_KEPT))
        return producers


def _entries(data: bytes) -> Iterable[tuple[int, ...]]:
    return _SNAPSHOT_ENTRY.iter_unpack(data[_SNAPSHOT_HEAD.size :])
