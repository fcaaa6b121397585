"""The log of one replica: segments, leader epochs, producers. Source: `UnifiedLog` of Kafka 3.9.

Nothing is on disk before the first record, so partitions that are never used take no space. Used
from one thread. When an append returns, the operating system has the bytes. As in Kafka, they are
not flushed to the disk.
"""

from __future__ import annotations

import logging
import os
import time
from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Final, NamedTuple

from bridgehead.kafka_wire.errors import ApiError, ErrorCode
from bridgehead.slices import Steps
from cluster_model.znodes.layout import encode_uuid
from data_plane.log.checkpoints import LEADER_EPOCHS, PARTITION_METADATA, LogName, write_epochs
from data_plane.log.epochs import LeaderEpochs
from data_plane.log.open_files import OpenFiles, flush_all, replace_file
from data_plane.log.segment import DELETED, RELATIVE_OFFSET_MAX, SWAP, Placed, Segment
from data_plane.producers import AppendedBatch, Producers
from data_plane.records.batch import parse_header, records_of, split_batches
from data_plane.records.validation import Batch, place_validated, validate, validating
from data_plane.settings import TopicSettings

_log = logging.getLogger(__name__)
_INDEX_ENTRY_BYTES: Final = 8
_SNAPSHOTS_KEPT: Final = 2
UNKNOWN_OFFSET: Final = -1


class AppendInfo(NamedTuple):
    """The result of an append. `crc` is the CRC of the first appended batch.

    `append_time` is the broker's time if the topic has LogAppendTime, else -1. For a duplicate,
    `append_time` is the largest timestamp of the batch, and `crc` is -1.
    """

    base_offset: int
    last_offset: int
    append_time: int
    is_duplicate: bool = False
    crc: int = -1


class TimedOffset(NamedTuple):
    """An offset with the timestamp of its record."""

    timestamp: int
    offset: int
    leader_epoch: int


class SharedByLogs(NamedTuple):
    """What the logs of one broker share.

    `settings_of` returns a topic's current configs. `created` is called when the log has a folder.
    """

    files: OpenFiles
    settings_of: Callable[[str], TopicSettings]
    created: Callable[[PartitionLog], None]


class PartitionLog:
    """One replica's records, in a folder below `parent`.

    A broker may have 100,000 logs without a record. Such a log has no segments and no producers:
    they are created when they are used.
    """

    __slots__ = (
        *("__weakref__", "_producers", "_segments", "_shared", "cleaned_offset", "end_offset"),
        *("epochs", "name", "on_disk", "parent", "recovery_point", "start_offset", "topic_id"),
        "truncations",
    )

    def __init__(self, parent: Path, name: LogName, topic_id: bytes, shared: SharedByLogs) -> None:
        self.parent = parent
        self.name = name
        self.topic_id = topic_id
        self._shared = shared
        self._segments: list[Segment] | None = None
        self.epochs = LeaderEpochs()
        self._producers: Producers | None = None
        self.start_offset = 0
        self.end_offset = 0
        self.recovery_point = 0
        self.cleaned_offset = UNKNOWN_OFFSET  # where compaction continues
        self.truncations = 0  # how often records were removed from the end
        self.on_disk = False

    def __str__(self) -> str:
        return f"{self.name[0]}-{self.name[1]}"

    @property
    def folder(self) -> Path:
        """The folder of the log's files. It exists if `on_disk`."""
        return self.parent / str(self)

    @property
    def files(self) -> OpenFiles:
        """The open files of all logs."""
        return self._shared.files

    def settings(self) -> TopicSettings:
        """Return the topic's current configs."""
        return self._shared.settings_of(self.name[0])

    @property
    def segments(self) -> list[Segment]:
        """At least one segment. The first record of an unused log is at its end offset."""
        if self._segments is None:
            self._segments = [Segment(self.folder, self.end_offset, self.files)]
        return self._segments

    @segments.setter
    def segments(self, segments: list[Segment]) -> None:
        self._segments = segments

    @property
    def producers(self) -> Producers:
        """The idempotent producers."""
        if self._producers is None:
            self._producers = Producers()
        return self._producers

    @producers.setter
    def producers(self, producers: Producers) -> None:
        self._producers = producers

    @property
    def size(self) -> int:
        """The bytes of all segments."""
        return sum(segment.size for segment in self._segments or ())

    # --- Appending -----------------------------------------------------------------------

    def validating(self, records: bytes, now_ms: int) -> Steps[list[Batch]]:
        """Return the steps that validate records for `append`."""
        rules = self.settings().rules(str(self))
        return validating(records, rules, next_offset=0, leader_epoch=0, now_ms=now_ms)

    def append(
        self,
        records: bytes,
        leader_epoch: int,
        now_ms: int,
        validated: Sequence[Batch] | None = None,
    ) -> AppendInfo:
        """Validate records (unless they are `validated`), assign offsets and append, as the leader.

        For a batch that was appended before, return the offsets of its first append.

        Raises:
            ApiError: nothing was appended. The records were rejected, or the disk failed
                (KAFKA_STORAGE_ERROR).
        """
        settings = self.settings()
        rules = settings.rules(str(self))
        if validated is None:
            batches = validate(
                *(records, rules),
                next_offset=self.end_offset,
                leader_epoch=leader_epoch,
                now_ms=now_ms,
            )
        else:
            batches = [place_validated(batch, self.end_offset, leader_epoch) for batch in validated]
        append_time = now_ms if rules.uses_append_time else -1
        if not batches:
            return AppendInfo(-1, -1, append_time)
        total = sum(len(batch.data) for batch in batches)
        segment_bytes = settings.number("segment.bytes")
        if total > segment_bytes:
            raise ApiError(
                ErrorCode.RECORD_LIST_TOO_LARGE,
                f"Message batch size is {total} bytes in append to partition {self}, which "
                f"exceeds the maximum configured segment size of {segment_bytes}.",
            )
        for batch in batches:
            earlier = self.producers.duplicate_of(batch.header)
            if earlier is not None:
                return _as_before(earlier)
            self.producers.check(batch.header, str(self))
        self._store(batches, settings, now_ms)
        first, last = batches[0].header, batches[-1].header
        return AppendInfo(first.base_offset, last.last_offset, append_time, crc=first.crc)

    def append_as_follower(self, records: bytes, now_ms: int) -> None:
        """Append the leader's batches unchanged. Batches that the log already has are skipped.

        Raises:
            ApiError: a size is invalid (CORRUPT_MESSAGE), or the disk failed (KAFKA_STORAGE_ERROR).
        """
        batches = []
        for data in split_batches(records):
            header = parse_header(data)
            if header.base_offset >= self.end_offset:
                batches.append(Batch(header, data))
        if batches and not self.on_disk and self.end_offset == 0:
            self.start_at(batches[0].header.base_offset)
        self._store(batches, self.settings(), now_ms)

    def _store(self, batches: list[Batch], settings: TopicSettings, now_ms: int) -> None:
        interval = settings.number("index.interval.bytes")
        for header, data in batches:
            try:
                self._prepare()
                self._roll_if_needed(settings, len(data), header.max_timestamp, now_ms)
                self.begin_epoch(header.leader_epoch, header.base_offset)
                self.segments[-1].append(header, data, interval)
            except OSError as error:
                _log.exception("%s: an append failed", self)
                raise ApiError(ErrorCode.KAFKA_STORAGE_ERROR) from error
            self.producers.appended(header)
            self.end_offset = header.next_offset

    def _prepare(self) -> None:
        """Create the folder before the first record."""
        if self.on_disk:
            return
        self.folder.mkdir(parents=True, exist_ok=True)
        self._write_topic_id()
        write_epochs(self.folder / LEADER_EPOCHS, self.epochs.entries)
        self.segments[-1].created_ms = time.time_ns() // 1_000_000
        self.is_stored()

    def is_stored(self) -> None:
        """The log has a folder from now on."""
        self.on_disk = True
        self._shared.created(self)

    def set_topic_id(self, topic_id: bytes) -> None:
        """Store the topic id of a log whose folder lacks it, for example after a kill."""
        self.topic_id = topic_id
        if self.on_disk:
            self._write_topic_id()

    def _write_topic_id(self) -> None:
        text = f"version: 0\ntopic_id: {encode_uuid(self.topic_id)}\n"
        replace_file(self.folder / PARTITION_METADATA, text.encode())

    def _roll_if_needed(
        self, settings: TopicSettings, size: int, timestamp: int, now_ms: int
    ) -> None:
        active = self.segments[-1]
        if active.size == 0:
            return
        entries_max = settings.number("segment.index.bytes") // _INDEX_ENTRY_BYTES
        interval = max(1, settings.number("index.interval.bytes"))
        began, reached = active.first_timestamp, max(timestamp, -1)
        if began is None:
            began, reached = active.created_ms, now_ms
        if (
            active.size + size > settings.number("segment.bytes")
            or reached - began > settings.segment_ms
            or self.end_offset - active.base_offset >= RELATIVE_OFFSET_MAX
            or active.size // interval >= entries_max
        ):
            self.roll(now_ms)

    def roll(self, now_ms: int) -> None:
        """Begin a new segment, if the active one has records."""
        active = self.segments[-1]
        if active.size == 0:
            return
        active.index_time()
        new = Segment(self.folder, self.end_offset, self.files)
        new.created_ms = now_ms
        # Creates the file, because after a restart its name tells where the log ends.
        self.files.descriptor(new.path)
        self.segments.append(new)
        self.write_snapshot()

    def begin_epoch(self, epoch: int, start_offset: int) -> None:
        """Begin a leader epoch, unless it has begun already.

        Raises:
            OSError: the epochs could not be stored. They have not changed.
        """
        if epoch == self.epochs.latest:
            return
        if not self.on_disk:
            self.epochs.assign(epoch, start_offset)
            return
        before = list(self.epochs.entries)
        try:
            if self.epochs.assign(epoch, start_offset):
                self.write_epochs()
        except OSError:
            self.epochs.entries = before
            raise

    def write_epochs(self) -> None:
        """Store the leader epochs."""
        if self.on_disk:
            write_epochs(self.folder / LEADER_EPOCHS, self.epochs.entries)

    def write_snapshot(self) -> None:
        """Write a snapshot of the producers at the log's end. The last two snapshots are kept."""
        if not self.on_disk:
            return
        path = self.folder / f"{self.end_offset:020d}.snapshot"
        replace_file(path, self.producers.snapshot())
        for old in sorted(self.folder.glob("*.snapshot"))[:-_SNAPSHOTS_KEPT]:
            old.unlink(missing_ok=True)

    # --- Reading -------------------------------------------------------------------------

    def read(
        self, offset: int, max_bytes: int, end_offset: int, *, whole_first: bool = True
    ) -> bytes:
        """Return bytes of one segment, from the batch that contains `offset` up to `end_offset`.

        As in Kafka, the last batch may be incomplete, because of `max_bytes`. With `whole_first`,
        the first batch is returned whole even if it is larger than `max_bytes`.

        Raises:
            ApiError: the log does not have `offset` (OFFSET_OUT_OF_RANGE).
        """
        if not self.start_offset <= offset <= self.end_offset:
            raise ApiError(ErrorCode.OFFSET_OUT_OF_RANGE)
        if offset >= end_offset:
            return b""
        at = self._segment_at(offset)
        for number in range(at, len(self.segments)):
            segment = self.segments[number]
            first = segment.find(offset)
            if first is None or first.header.base_offset >= end_offset:
                continue
            limit = segment.size
            is_last = number + 1 == len(self.segments)
            following = self.end_offset if is_last else self.segments[number + 1].base_offset
            if end_offset < following:
                beyond = segment.find(end_offset)
                limit = segment.size if beyond is None else beyond.position
            size = max(max_bytes, first.header.size) if whole_first else max_bytes
            return segment.read(first.position, min(size, limit - first.position))
        return b""

    def _segment_at(self, offset: int) -> int:
        after = bisect_right(self.segments, offset, key=lambda segment: segment.base_offset)
        return max(0, after - 1)

    def offset_of_time(self, timestamp: int) -> TimedOffset | None:
        """Return the first record at or after `timestamp`; None if there is none."""
        return self._first_at(timestamp, self.start_offset)

    def newest_timestamp(self) -> TimedOffset | None:
        """Return the first record with the largest timestamp; None without timestamps.

        As in Kafka, the record may be before the log start offset until its segment is deleted.
        """
        newest = max((segment.max_timestamp for segment in self.segments), default=-1)
        return self._first_at(newest, 0) if newest >= 0 else None

    def _first_at(self, timestamp: int, start_offset: int) -> TimedOffset | None:
        for segment in self.segments:
            if segment.max_timestamp < timestamp:
                continue
            for placed in segment.find_time(timestamp):
                for record in records_of(segment.read(placed.position, placed.header.size)):
                    if record.timestamp >= timestamp and record.offset >= start_offset:
                        epoch = placed.header.leader_epoch
                        return TimedOffset(record.timestamp, record.offset, epoch)
        return None

    # --- Truncating and deleting ---------------------------------------------------------

    def truncate_to(self, offset: int) -> None:
        """Remove the records from `offset` on; the batch that contains it is removed whole.

        If `offset` is before the first segment, no record stays, and the log begins at `offset`.
        """
        if offset >= self.end_offset:
            return
        self.truncations += 1
        if offset < self.segments[0].base_offset:
            self.start_at(offset)
            return
        while len(self.segments) > 1 and self.segments[-1].base_offset > offset:
            self.segments.pop().delete()
        active = self.segments[-1]
        placed = active.find(offset)
        if placed is not None:
            active.truncate(placed.position)
        self.end_offset = self._scan_end(active)
        self.start_offset = min(self.start_offset, self.end_offset)
        self.recovery_point = min(self.recovery_point, self.end_offset)
        self.cleaned_offset = min(self.cleaned_offset, self.end_offset)
        if self.epochs.truncate_end(self.end_offset):
            self.write_epochs()
        for snapshot in self.folder.glob("*.snapshot"):
            if int(snapshot.stem) > self.end_offset:
                snapshot.unlink()
        self.reload_producers()

    def _scan_end(self, active: Segment) -> int:
        end = active.base_offset
        for placed in active.batches(0):
            end = placed.header.next_offset
        return end

    def start_at(self, offset: int) -> None:
        """Delete everything and begin again at `offset`, for example on a follower far behind."""
        for segment in self._segments or ():
            segment.delete()
        for snapshot in self.folder.glob("*.snapshot"):
            snapshot.unlink()
        self._segments = self._producers = None
        self.start_offset = self.end_offset = self.recovery_point = offset
        self.cleaned_offset = UNKNOWN_OFFSET
        self.epochs = LeaderEpochs()
        self.write_epochs()

    def advance_start(self, offset: int) -> bool:
        """Move the log start offset forward; return whether it moved. No segment is deleted."""
        if offset <= self.start_offset:
            return False
        self.start_offset = min(offset, self.end_offset)
        if self.epochs.truncate_start(self.start_offset):
            self.write_epochs()
        return True

    def delete_old_segments(self, now_ms: int, high_watermark: int) -> int:
        """Apply retention; return how many segments were deleted."""
        settings = self.settings()
        total = 0
        if settings.deletes:
            total += self._delete_while(self._is_expired(settings, now_ms), high_watermark, now_ms)
            total += self._delete_while(self._is_excess(settings), high_watermark, now_ms)
        return total + self._delete_while(self._is_before_start(), high_watermark, now_ms)

    def _is_expired(self, settings: TopicSettings, now_ms: int) -> Callable[[int], bool]:
        retention_ms = settings.number("retention.ms")

        def is_expired(number: int) -> bool:
            segment = self.segments[number]
            newest = segment.max_timestamp
            if newest < 0:
                newest = int(os.path.getmtime(segment.path) * 1000)
            return retention_ms >= 0 and now_ms - newest > retention_ms

        return is_expired

    def _is_excess(self, settings: TopicSettings) -> Callable[[int], bool]:
        limit = settings.number("retention.bytes")
        return lambda number: limit >= 0 and self.size - self.segments[number].size >= limit

    def _is_before_start(self) -> Callable[[int], bool]:
        def is_before(number: int) -> bool:
            following = number + 1
            if following == len(self.segments):
                return False
            return self.segments[following].base_offset <= self.start_offset

        return is_before

    def _delete_while(
        self, is_deletable: Callable[[int], bool], high_watermark: int, now_ms: int
    ) -> int:
        """Delete the oldest segments; stop before one that must stay or has uncommitted records."""
        count = 0
        while self.on_disk and (len(self.segments) > 1 or self.segments[0].size):
            if not is_deletable(0):
                break
            end = self.segments[1].base_offset if len(self.segments) > 1 else self.end_offset
            if end > high_watermark:
                break
            if len(self.segments) == 1:
                self.roll(now_ms)
            self.files.remove(self.segments.pop(0).rename(DELETED))
            self.advance_start(self.segments[0].base_offset)
            count += 1
        return count

    @property
    def unflushed(self) -> list[Path]:
        """The files of the completed segments that are not flushed to the disk yet."""
        ended = zip(self.segments, self.segments[1:], strict=False)
        return [
            path
            for segment, following in ended
            if following.base_offset > self.recovery_point
            for path in segment.paths
        ]

    def replace_segments(self, old: Sequence[Segment], new: Segment) -> list[Path]:
        """Put a compacted segment in the place of `old`; return the old files, to be deleted.

        `new` has the suffix `.cleaned`. A kill at any moment leaves files from which
        `finish_replacements` restores the state before or after the replacement.
        """
        at = self.segments.index(old[0])
        new.rename(SWAP)
        gone = [path for segment in old for path in segment.rename(DELETED)]
        new.rename("")
        self.segments[at : at + len(old)] = [new]
        return gone

    # --- Opening and closing -------------------------------------------------------------

    def reload_producers(self) -> None:
        """Read the newest valid snapshot and the batches after it."""
        producers, at = Producers(), self.start_offset
        for path in sorted(self.folder.glob("*.snapshot"), reverse=True):
            if int(path.stem) > self.end_offset:
                continue
            loaded = Producers.from_snapshot(path.read_bytes())
            if loaded is not None:
                producers, at = loaded, int(path.stem)
                break
        for placed in self.placed_from(at):
            producers.appended(placed.header)
        self.producers = producers

    def placed_from(self, offset: int) -> Iterator[Placed]:
        """Yield the headers of all batches from `offset` on."""
        for segment in self.segments[self._segment_at(offset) :]:
            first = segment.find(offset)
            if first is not None:
                yield from segment.batches(first.position)

    def close_files(self) -> None:
        """Close the files of all segments; the next access opens them again."""
        for segment in self._segments or ():
            segment.close()

    def relocate(self, parent: Path) -> None:
        """Use the same files in a folder below another one."""
        self.parent = parent
        for segment in self._segments or ():
            segment.relocate(self.folder)

    def close(self) -> None:
        """Store indexes and producers and flush everything. The next start then trusts the files.

        Raises:
            OSError: the disk is full or broken.
        """
        if self.on_disk:
            self.segments[-1].index_time()
            self.write_snapshot()
            flush_all([*self.unflushed, *self.segments[-1].paths])
        self.recovery_point = self.end_offset


def _as_before(earlier: AppendedBatch) -> AppendInfo:
    """Return the first append's result. As in Kafka, its time is the batch's largest timestamp."""
    first, last = earlier.first_offset, earlier.last_offset
    return AppendInfo(first, last, earlier.timestamp, is_duplicate=True)
