"""The leader epochs of a log and the offset at which each begins. KIP-101, KIP-279."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable
from typing import Final, NamedTuple

UNDEFINED_EPOCH: Final = -1
UNDEFINED_OFFSET: Final = -1


class EpochStart(NamedTuple):
    """A leader epoch and the offset of its first record."""

    epoch: int
    start_offset: int


class LeaderEpochs:
    """Epochs with their start offsets. Epochs and offsets increase."""

    __slots__ = ("entries",)

    def __init__(self, entries: Iterable[EpochStart] = ()) -> None:
        self.entries: list[EpochStart] = list(entries)

    @property
    def latest(self) -> int:
        """The newest epoch; -1 for none."""
        return self.entries[-1].epoch if self.entries else UNDEFINED_EPOCH

    def assign(self, epoch: int, start_offset: int) -> bool:
        """Begin an epoch; return whether anything changed.

        A negative epoch and the latest epoch change nothing. Otherwise an entry is dropped if its
        epoch is at least `epoch`, or its start offset is at least `start_offset`.
        """
        if epoch < 0 or epoch == self.latest:
            return False
        while self.entries and (
            self.entries[-1].epoch >= epoch or self.entries[-1].start_offset >= start_offset
        ):
            self.entries.pop()
        self.entries.append(EpochStart(epoch, start_offset))
        return True

    def end_offset(self, epoch: int, log_end_offset: int) -> tuple[int, int]:
        """Return the largest epoch up to `epoch`, and its end offset; (-1, -1) if unknown.

        If all epochs are larger, return `epoch` and the start offset of the first one.
        """
        if not self.entries or epoch == UNDEFINED_EPOCH or epoch > self.latest:
            return UNDEFINED_EPOCH, UNDEFINED_OFFSET
        if epoch == self.latest:
            return epoch, log_end_offset
        after = bisect_right(self.entries, epoch, key=lambda entry: entry.epoch)
        end = self.entries[after].start_offset
        return (self.entries[after - 1].epoch if after else epoch), end

    def epoch_of(self, offset: int) -> int:
        """Return the epoch of the record at `offset`; -1 if unknown."""
        after = bisect_right(self.entries, offset, key=lambda entry: entry.start_offset)
        return self.entries[after - 1].epoch if after else UNDEFINED_EPOCH

    def truncate_end(self, end_offset: int) -> bool:
        """Drop the epochs that begin at or after `end_offset`; return whether there were any."""
        kept = [entry for entry in self.entries if entry.start_offset < end_offset]
        changed = len(kept) < len(self.entries)
        self.entries = kept
        return changed

    def truncate_start(self, start_offset: int) -> bool:
        """Drop the epochs that end at or before `start_offset`; return whether an entry changed.

        The epoch that includes `start_offset` now begins there.
        """
        before = [entry for entry in self.entries if entry.start_offset <= start_offset]
        if not before or (before[-1].start_offset == start_offset and len(before) == 1):
            return False
        first = before[-1]._replace(start_offset=start_offset)
        self.entries = [first, *self.entries[len(before) :]]
        return True
