"""One segment of a log: `.log` with its `.index` and `.timeindex`, like Kafka 3.9's `LogSegment`.

An index entry is added for every `index.interval.bytes` of records. Offsets in the indexes are
relative to the segment's base offset. Indexes are searched on disk, not in memory.
"""

from __future__ import annotations

import os
import struct
from collections.abc import Callable, Generator, Iterator
from itertools import pairwise
from pathlib import Path
from typing import Final, NamedTuple

from data_plane.log.open_files import OpenFiles, write_all
from data_plane.records.batch import HEADER_BYTES, MAGIC_V2, PREFIX_BYTES, BatchHeader, parse_header

_INDEX_ENTRY: Final = struct.Struct(">ii")  # relative last offset, position of its batch
_TIME_ENTRY: Final = struct.Struct(">qi")  # largest timestamp so far, relative offset
_SCAN_BYTES: Final = 64 * 1024
_SMALLEST_LENGTH: Final = HEADER_BYTES - PREFIX_BYTES
RELATIVE_OFFSET_MAX: Final = 2**31 - 1
BASE_OFFSET_MAX: Final = 2**63 - 1 - RELATIVE_OFFSET_MAX  # so that every offset has 64 bits
CLEANED: Final = ".cleaned"
SWAP: Final = ".swap"
DELETED: Final = ".deleted"


class Placed(NamedTuple):
    """A batch's header and its position in the segment."""

    position: int
    header: BatchHeader


class Segment:
    """A part of a log. `size` is in bytes; `base_offset` is part of the files' names."""

    def __init__(self, folder: Path, base_offset: int, files: OpenFiles, suffix: str = "") -> None:
        """`suffix` is the last part of the files' names while compaction replaces segments."""
        self.base_offset = base_offset
        self._suffix = suffix
        self.size = 0
        self.max_timestamp = -1
        self.offset_of_max_timestamp = -1
        self.first_timestamp: int | None = None  # of the first batch; used to roll by time
        self.created_ms = 0
        self._files = files
        self._stem = folder / f"{base_offset:020d}"
        self._since_index = 0
        self._last_time = -1  # of the last entry of the time index

    @property
    def path(self) -> Path:
        """The `.log` file."""
        return self._stem.with_suffix(".log" + self._suffix)

    @property
    def index_path(self) -> Path:
        """The `.index` file."""
        return self._stem.with_suffix(".index" + self._suffix)

    @property
    def time_index_path(self) -> Path:
        """The `.timeindex` file."""
        return self._stem.with_suffix(".timeindex" + self._suffix)

    @property
    def snapshot_path(self) -> Path:
        """The `.snapshot` file: the producers' state where this segment begins."""
        return self._stem.with_suffix(".snapshot")

    def append(self, header: BatchHeader, data: bytes, index_interval: int) -> None:
        """Append one batch. When this returns, the operating system has the whole batch.

        Raises:
            OSError: the disk is full or broken; the segment is as before.
        """
        before = self._times
        try:
            write_all(self._files.descriptor(self.path), data)
            self._index(Placed(self.size, header), index_interval)
        except OSError:
            self._times = before
            self._cut_files(header.base_offset)
            raise
        self.size += len(data)

    @property
    def _times(self) -> tuple[int, int, int | None, int]:
        return (
            self.max_timestamp,
            self.offset_of_max_timestamp,
            self.first_timestamp,
            self._since_index,
        )

    @_times.setter
    def _times(self, times: tuple[int, int, int | None, int]) -> None:
        (
            self.max_timestamp,
            self.offset_of_max_timestamp,
            self.first_timestamp,
            self._since_index,
        ) = times

    def _index(self, placed: Placed, index_interval: int) -> None:
        position, header = placed
        self._note_times(header)
        if self._since_index > index_interval:
            relative = header.last_offset - self.base_offset
            self._write_entry(self.index_path, _INDEX_ENTRY.pack(relative, position))
            self.index_time()
            self._since_index = 0
        self._since_index += header.size

    def index_time(self) -> None:
        """Add the largest timestamp to the time index, if it is not there yet."""
        if self.max_timestamp > self._last_time:
            relative = self.offset_of_max_timestamp - self.base_offset
            self._write_entry(self.time_index_path, _TIME_ENTRY.pack(self.max_timestamp, relative))
            self._last_time = self.max_timestamp

    def _note_times(self, header: BatchHeader) -> None:
        if self.first_timestamp is None and header.max_timestamp >= 0:
            self.first_timestamp = header.max_timestamp
        if header.max_timestamp > self.max_timestamp:
            self.max_timestamp = header.max_timestamp
            self.offset_of_max_timestamp = header.last_offset

    def _write_entry(self, path: Path, entry: bytes) -> None:
        """Append an entry to an index. If the disk is full, no part of it stays."""
        descriptor = self._files.descriptor(path)
        try:
            write_all(descriptor, entry)
        except OSError:
            whole = os.fstat(descriptor).st_size // len(entry) * len(entry)
            os.ftruncate(descriptor, whole)
            raise

    # --- Reading -------------------------------------------------------------------------

    def read(self, position: int, size: int) -> bytes:
        """Return up to `size` bytes."""
        return os.pread(self._files.descriptor(self.path), size, position)

    def batches(self, position: int, end: int | None = None) -> Iterator[Placed]:
        """Yield headers from the batch at `position` to `end` or the first incomplete batch."""
        end = self.size if end is None else end
        chunk, chunk_at = b"", position
        while position + HEADER_BYTES <= end:
            if not chunk_at <= position <= chunk_at + len(chunk) - HEADER_BYTES:
                chunk, chunk_at = self.read(position, _SCAN_BYTES), position
                if len(chunk) < HEADER_BYTES:
                    return
            header = parse_header(chunk, position - chunk_at)
            if header.length < _SMALLEST_LENGTH or position + header.size > end:
                return
            yield Placed(position, header)
            position += header.size

    def find(self, offset: int) -> Placed | None:
        """Return the first batch whose last offset is at least `offset`."""
        start = self._look_up(offset - self.base_offset)
        return next(
            (batch for batch in self.batches(start) if batch.header.last_offset >= offset), None
        )

    def find_time(self, timestamp: int) -> Iterator[Placed]:
        """Yield the batches that may have a record at or after `timestamp`, in order."""
        entries = os.path.getsize(self.time_index_path) if self.time_index_path.exists() else 0
        low, high = 0, entries // _TIME_ENTRY.size
        start = 0
        descriptor = self._files.descriptor(self.time_index_path) if entries else -1
        while low < high:  # Find the last entry with an earlier timestamp.
            middle = (low + high) // 2
            raw = os.pread(descriptor, _TIME_ENTRY.size, middle * _TIME_ENTRY.size)
            time, relative = _TIME_ENTRY.unpack(raw)
            if time < timestamp:
                start, low = relative, middle + 1
            else:
                high = middle
        position = self._look_up(start)
        return (
            batch for batch in self.batches(position) if batch.header.max_timestamp >= timestamp
        )

    def _look_up(self, relative_offset: int) -> int:
        """Return the position of the last indexed batch that ends at or before the offset."""
        if self._index_entries == 0:
            return 0
        descriptor = self._files.descriptor(self.index_path)
        low, high, position = 0, self._index_entries, 0
        while low < high:
            middle = (low + high) // 2
            raw = os.pread(descriptor, _INDEX_ENTRY.size, middle * _INDEX_ENTRY.size)
            indexed, at = _INDEX_ENTRY.unpack(raw)
            if indexed <= relative_offset:
                position, low = at, middle + 1
            else:
                high = middle
        return position

    @property
    def last_indexed_position(self) -> int:
        """The position of the last batch in the index; 0 without entries."""
        return self._look_up(RELATIVE_OFFSET_MAX)

    @property
    def _index_entries(self) -> int:
        if not self.index_path.exists():
            return 0
        return os.path.getsize(self.index_path) // _INDEX_ENTRY.size

    # --- Changing ------------------------------------------------------------------------

    def load(self, created_ms: int) -> None:
        """Take size and times from the files of a segment that was closed cleanly."""
        self.size = os.path.getsize(self.path)
        self.created_ms = created_ms
        first = next(self.batches(0), None)
        if first is not None and first.header.max_timestamp >= 0:
            self.first_timestamp = first.header.max_timestamp
        size = os.path.getsize(self.time_index_path) if self.time_index_path.exists() else 0
        if size >= _TIME_ENTRY.size:
            at = (size // _TIME_ENTRY.size - 1) * _TIME_ENTRY.size
            raw = os.pread(self._files.descriptor(self.time_index_path), _TIME_ENTRY.size, at)
            self.max_timestamp, relative = _TIME_ENTRY.unpack(raw)
            self.offset_of_max_timestamp = self.base_offset + relative
            self._last_time = self.max_timestamp

    def has_sound_indexes(self) -> bool:
        """Return whether the entries of both indexes grow and fit to the log. Call `load` first."""
        indexes = [
            path.read_bytes() if path.exists() else b""
            for path in (self.index_path, self.time_index_path)
        ]
        if len(indexes[0]) % _INDEX_ENTRY.size or len(indexes[1]) % _TIME_ENTRY.size:
            return False
        entries = [(-1, -1), *_INDEX_ENTRY.iter_unpack(indexes[0])]
        times = [(-1, -1), *_TIME_ENTRY.iter_unpack(indexes[1])]
        for pairs in (entries, times):
            if any(a >= c or b >= d for (a, b), (c, d) in pairwise(pairs)):
                return False
        relative, position = entries[-1]
        if position < 0:
            return True
        placed = next(self.batches(position), None)
        # Kafka's entry has the last offset of all batches that were appended together.
        return placed is not None and (
            self.base_offset <= placed.header.base_offset
            and placed.header.last_offset <= self.base_offset + relative
        )

    def rebuild(self, index_interval: int) -> Generator[Placed, None, None]:
        """Recreate the indexes and yield each batch. An incomplete last batch is not in `size`.

        The caller checks each batch and may stop with `close()`. The rest is then neither indexed
        nor in `size`, and the caller must remove it from the file.
        """
        total = os.path.getsize(self.path)
        for path in (self.index_path, self.time_index_path):
            self._files.close(path)
            path.unlink(missing_ok=True)
        self.max_timestamp = self._last_time = self.offset_of_max_timestamp = -1
        self.first_timestamp, self._since_index, self.size = None, 0, 0
        for placed in self.batches(0, total):
            yield placed
            self._index(placed, index_interval)
            self.size += placed.header.size

    def truncate(self, position: int) -> None:
        """Remove everything from `position` on, which is where a batch begins or the file ends.

        This needs no space: followers truncate their logs on a full disk, too.
        """
        self.size = position
        self.max_timestamp = self.offset_of_max_timestamp = -1
        self.first_timestamp, self._since_index = None, 0
        end_offset = self.base_offset
        for placed in self.batches(0):
            self._note_times(placed.header)
            end_offset = placed.header.next_offset
        self._cut_files(end_offset)

    def _cut_files(self, end_offset: int) -> None:
        """Remove from the files what is not in the segment, whose log ends at `end_offset`."""
        self.cut()
        self._cut_index(self.index_path, _INDEX_ENTRY, lambda _, position: position < self.size)
        relative_end = end_offset - self.base_offset
        last = self._cut_index(
            self.time_index_path, _TIME_ENTRY, lambda _, relative: relative < relative_end
        )
        self._last_time = last[0] if last else -1

    def _cut_index(
        self, path: Path, entry: struct.Struct, keeps: Callable[[int, int], bool]
    ) -> tuple[int, int] | None:
        """Remove the entries behind the last one that `keeps` accepts; return that one."""
        if not path.exists():
            return None
        descriptor = self._files.descriptor(path)
        count = os.fstat(descriptor).st_size // entry.size
        while count:
            first, second = entry.unpack(os.pread(descriptor, entry.size, (count - 1) * entry.size))
            if keeps(first, second):
                break
            count -= 1
        os.ftruncate(descriptor, count * entry.size)
        return (first, second) if count else None

    def cut(self) -> None:
        """Remove everything after `size` bytes."""
        os.ftruncate(self._files.descriptor(self.path), self.size)

    def close(self) -> None:
        """Close the files; the next access opens them again."""
        for path in self.paths:
            self._files.close(path)

    def use(self, files: OpenFiles) -> None:
        """Open the files through `files` from now on."""
        self.close()
        self._files = files

    def rename(self, suffix: str) -> list[Path]:
        """Give the files another suffix; return their new paths."""
        self.close()
        before, self._suffix = self.paths, suffix
        for old, new in zip(before, self.paths, strict=True):
            if old.exists():
                os.replace(old, new)
        return self.paths

    def relocate(self, folder: Path) -> None:
        """Use the same files in another folder."""
        self._stem = folder / self._stem.name

    @property
    def paths(self) -> list[Path]:
        """The `.index`, `.timeindex` and `.log` files."""
        return [self.index_path, self.time_index_path, self.path]

    def delete(self) -> None:
        """Delete the files."""
        self.close()
        for path in (self.path, self.index_path, self.time_index_path, self.snapshot_path):
            path.unlink(missing_ok=True)


def is_readable(header: BatchHeader) -> bool:
    """Return whether this log can have written a batch with this header."""
    return header.magic == MAGIC_V2 and header.last_offset_delta >= 0
