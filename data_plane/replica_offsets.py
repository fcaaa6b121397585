"""The offsets of one replica, as ListOffsets reports them."""

from __future__ import annotations

import os

from data_plane.log.epochs import UNDEFINED_EPOCH
from data_plane.partition import Partition


class ReplicaOffsets:
    """See OffsetsOfLog in broker_proxy.apis.records.list_offsets."""

    def __init__(self, partition: Partition, now_ms: int) -> None:
        self._partition = partition
        self._log = partition.log
        self._now_ms = now_ms
        self.start_offset = partition.log.start_offset
        self.high_watermark = partition.high_watermark
        self.end_offset = partition.log.end_offset

    def epoch_start(self) -> int:
        """Return the start offset of the current leader epoch; 0 if the log lacks this epoch."""
        entries = self._log.epochs.entries
        if entries and entries[-1].epoch == self._partition.leader_epoch:
            return entries[-1].start_offset
        return 0

    def epoch_of_start(self) -> int:
        """Return the leader epoch at the log start offset; -1 if it is unknown."""
        entries = self._log.epochs.entries
        earliest = entries[0] if entries else None
        if earliest is None or earliest.start_offset > self.start_offset:
            return UNDEFINED_EPOCH
        return self._log.epochs.epoch_of(self.start_offset)

    def at_time(self, timestamp: int) -> tuple[int, int, int] | None:
        """Return timestamp, offset and leader epoch of the first record at or after a time."""
        return self._log.offset_of_time(timestamp)

    def newest(self) -> tuple[int, int, int] | None:
        """Return the same values as `at_time`, for the first record with the largest timestamp."""
        return self._log.newest_timestamp()

    def segment_times(self) -> list[tuple[int, int]]:
        """Return (first offset, time of last change) per segment; [] if the log is not on disk.

        If the active segment has records, the last item is (log end, now).
        """
        if not self._log.on_disk:
            return []
        segments = [
            (
                max(segment.base_offset, self.start_offset),
                int(os.path.getmtime(segment.path) * 1000),
            )
            for segment in self._log.segments
            if segment.path.exists()
        ]
        if self._log.segments[-1].size:
            segments.append((self.end_offset, self._now_ms))
        return segments
