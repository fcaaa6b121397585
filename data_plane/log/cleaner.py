"""Compacts one log (`cleanup.policy=compact`). Source: `LogCleaner` of Kafka 3.9.

`plan` and `finish` run on the event loop, `clean` in another thread: it reads segments that no
longer change, through its own file descriptors, and writes new files beside them. The active
segment and records above the high watermark are never read. Memory is bounded by a limit on the
number of keys; a log with more keys is compacted in several passes.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from data_plane.log.open_files import READING, OpenFiles, flush_all
from data_plane.log.partition_log import PartitionLog
from data_plane.log.segment import CLEANED, RELATIVE_OFFSET_MAX, Segment
from data_plane.records.batch import parse_header
from data_plane.records.compaction import LastOffsets, Terms, compacted

_OPEN_FILES_MAX: Final = 32
# The thread and the event loop share one interpreter lock, so the thread pauses after each slice.
_SLICE_S: Final = 0.001


@dataclass(frozen=True, slots=True)
class Plan:
    """The segments to compact in a log. Records before `first_dirty` are compacted already."""

    log: PartitionLog
    folder: Path
    truncations: int  # how often the log had been truncated when it was planned
    segments: tuple[Segment, ...]
    end_offset: int  # the first offset after `segments`
    first_dirty: int  # an offset
    dirty_ratio: float
    is_due: bool  # `dirty_ratio` or the age of the records exceeds its limit
    terms: Terms
    segment_bytes: int
    index_interval: int

    @property
    def is_current(self) -> bool:
        """False if the log was moved or truncated, or lost old segments, since it was planned."""
        log = self.log
        return (
            log.folder == self.folder
            and log.truncations == self.truncations
            and tuple(log.segments[: len(self.segments)]) == self.segments
        )


@dataclass(frozen=True, slots=True)
class Replacement:
    """A compacted segment, with the suffix `.cleaned`, and the segments that it replaces."""

    old: tuple[Segment, ...]
    new: Segment


@dataclass(frozen=True, slots=True)
class Cleaned:
    """The result for one plan. The log is compacted up to `end_offset`."""

    replacements: tuple[Replacement, ...]
    end_offset: int


def plan(log: PartitionLog, cleaned_offset: int, high_watermark: int, now_ms: int) -> Plan | None:
    """Return what may be compacted; None if there is nothing."""
    settings = log.settings()
    if not log.on_disk or not settings.is_compacted:
        return None
    newest_ms = now_ms - settings.number("min.compaction.lag.ms")
    count = 0
    for segment, following in zip(log.segments, log.segments[1:], strict=False):
        if following.base_offset > high_watermark or segment.max_timestamp > newest_ms:
            break
        count += 1
    if count == 0:
        return None
    segments = tuple(log.segments[:count])
    end = log.segments[count].base_offset
    is_known = log.start_offset <= cleaned_offset <= log.end_offset
    first_dirty = cleaned_offset if is_known else log.start_offset
    dirty = [
        candidate for candidate, next_base in _with_end(segments, end) if next_base > first_dirty
    ]
    dirty_bytes = sum(candidate.size for candidate in dirty)
    if not dirty_bytes:
        return None
    ratio = dirty_bytes / sum(candidate.size for candidate in segments)
    first_ms = dirty[0].first_timestamp
    is_late = first_ms is not None and now_ms - first_ms > settings.number("max.compaction.lag.ms")
    min_ratio = settings.values["min.cleanable.dirty.ratio"]
    assert isinstance(min_ratio, float)
    last = {
        producer_id: producer.batches[-1].last_offset
        for producer_id, producer in log.producers.by_id.items()
        if producer.batches
    }
    return Plan(
        log=log,
        folder=log.folder,
        truncations=log.truncations,
        segments=segments,
        end_offset=end,
        first_dirty=first_dirty,
        dirty_ratio=ratio,
        is_due=is_late or ratio > min_ratio,
        terms=Terms(now_ms, settings.number("delete.retention.ms"), last),
        segment_bytes=settings.number("segment.bytes"),
        index_interval=settings.number("index.interval.bytes"),
    )


def _with_end(segments: Sequence[Segment], end: int) -> Iterator[tuple[Segment, int]]:
    """Yield each segment with the first offset after it."""
    ends = [*(segment.base_offset for segment in segments[1:]), end]
    return zip(segments, ends, strict=True)


class StoppedError(Exception):
    """The broker stops; nothing was replaced."""


def clean(
    work: Plan, new_table: Callable[[int], LastOffsets], is_stopped: Callable[[], bool]
) -> Cleaned:
    """Write the compacted segments and flush them to the disk. Runs in its own thread.

    Raises:
        StoppedError: `is_stopped` became true.
        OSError: the disk failed, or the log was deleted meanwhile.
        ApiError: a batch is malformed.
    """
    reading, writing = OpenFiles(_OPEN_FILES_MAX, READING), OpenFiles(_OPEN_FILES_MAX)
    cleaning, done = _Cleaning(work, reading, writing, is_stopped), []
    try:
        table = cleaning.fill(new_table(work.first_dirty))
        for group in _groups(work):
            if group[0].base_offset < table.end_offset:
                done.append(Replacement(group, cleaning.compact(group, table)))
        return Cleaned(tuple(done), table.end_offset)
    except BaseException:
        for path in work.folder.glob("*" + CLEANED):
            path.unlink(missing_ok=True)
        raise
    finally:
        reading.close_all()
        writing.close_all()


def _groups(work: Plan) -> Iterator[tuple[Segment, ...]]:
    """Yield groups of adjacent segments. The records of a group fit into one segment."""
    group: list[Segment] = []
    for segment, following in _with_end(work.segments, work.end_offset):
        is_full = group and (
            sum(member.size for member in group) + segment.size > work.segment_bytes
            or following - group[0].base_offset > RELATIVE_OFFSET_MAX
        )
        if is_full:
            yield tuple(group)
            group = []
        group.append(segment)
    if group:
        yield tuple(group)


class _Cleaning:
    """Reads the segments of one plan and writes the compacted segments."""

    def __init__(
        self,
        work: Plan,
        reading: OpenFiles,
        writing: OpenFiles,
        is_stopped: Callable[[], bool],
    ) -> None:
        self._work = work
        self._is_stopped = is_stopped
        self._folder = work.folder
        self._reading = reading
        self._writing = writing
        self._paused_s = time.monotonic()

    def fill(self, table: LastOffsets) -> LastOffsets:
        """Add the keys of the records that are not compacted yet, while there is room."""
        work = self._work
        for segment, end in _with_end(work.segments, work.end_offset):
            if end <= work.first_dirty:
                continue
            for batch in self._batches(segment):
                if not table.add(batch):
                    return table
        table.end_offset = work.end_offset
        return table

    def compact(self, group: Sequence[Segment], table: LastOffsets) -> Segment:
        """Write one segment with the records of `group` that stay."""
        new = Segment(self._folder, group[0].base_offset, self._writing, CLEANED)
        new.path.unlink(missing_ok=True)
        self._writing.descriptor(new.path)  # Creates the file, even if no record stays.
        for segment in group:
            for batch in self._batches(segment):
                kept = compacted(batch, table, self._work.terms)
                if kept:
                    new.append(parse_header(kept), kept, self._work.index_interval)
        new.index_time()
        flush_all(new.paths)
        new.created_ms = group[0].created_ms
        modified_ns = os.stat(group[-1].path).st_mtime_ns
        os.utime(new.path, ns=(modified_ns, modified_ns))
        new.use(self._work.log.files)
        return new

    def _batches(self, segment: Segment) -> Iterator[bytes]:
        source = Segment(self._folder, segment.base_offset, self._reading)
        source.size = segment.size
        for position, header in source.batches(0):
            if self._is_stopped():
                raise StoppedError
            yield source.read(position, header.size)
            if time.monotonic() - self._paused_s > _SLICE_S:
                time.sleep(_SLICE_S)
                self._paused_s = time.monotonic()


def finish(work: Plan, result: Cleaned) -> list[Path] | None:
    """Replace the log's segments; return the files to delete, or None if the log has changed."""
    if not work.is_current:
        discard(result)
        return None
    gone: list[Path] = []
    for replacement in result.replacements:
        gone += work.log.replace_segments(replacement.old, replacement.new)
    return gone


def discard(result: Cleaned) -> None:
    """Delete the compacted segments that are not in use."""
    for replacement in result.replacements:
        for path in replacement.new.paths:
            if path.name.endswith(CLEANED):
                with suppress(OSError):
                    path.unlink()
