"""Compacts the logs of this broker's compacted topics, such as `__consumer_offsets`.

It compacts one log at a time: the one with the largest share of bytes that are not compacted yet.
As in Kafka, a log is due when this share exceeds `min.cleanable.dirty.ratio`, or when its oldest
records that are not compacted yet are older than `max.compaction.lag.ms`.
"""

from __future__ import annotations

import asyncio
import logging
import threading
from functools import partial
from weakref import WeakSet

from bridgehead.kafka_wire.errors import ApiError
from data_plane.log.cleaner import Plan, StoppedError, clean, discard, finish, plan
from data_plane.log.partition_log import PartitionLog
from data_plane.partitions import Partitions

_log = logging.getLogger(__name__)


class Compaction:
    """Compacts the logs of `partitions`. Used from the event loop."""

    def __init__(self, partitions: Partitions) -> None:
        self._partitions = partitions
        self._damaged: WeakSet[PartitionLog] = WeakSet()
        self._stopped = threading.Event()

    def stop(self) -> None:
        """End a compaction that is in progress. Its log is not changed."""
        self._stopped.set()

    async def compact(self, keys_max: int) -> int:
        """Compact every log that is due, with at most `keys_max` keys in memory.

        Return the number of completed compactions. It includes those that were discarded because
        meanwhile the topic was deleted, or the log was moved or truncated, or lost old segments. A
        log that cannot be compacted is skipped until the broker restarts.
        """
        count = 0
        while (work := await self._next()) is not None:
            try:
                await self._compact(work, keys_max)
                count += 1
            except StoppedError:
                return count
            except (ApiError, OSError):
                if self._is_current(work):
                    _log.exception("%s cannot be compacted", work.log)
                    self._damaged.add(work.log)
        return count

    def _is_current(self, work: Plan) -> bool:
        """Return whether the log still exists and has not changed since it was planned."""
        return self._partitions.directories.logs.get(work.log.name) is work.log and work.is_current

    async def _next(self) -> Plan | None:
        partitions, due = self._partitions, []
        for name, log in list(partitions.directories.stored.items()):
            partition = partitions.by_name.get(name)
            if partition is None or log in self._damaged:
                continue
            await partitions.settings.read(name[0])
            mark = partition.high_watermark
            work = plan(log, log.cleaned_offset, mark, partitions.now_ms())
            if work is not None and work.is_due:
                due.append(work)
        return max(due, key=lambda candidate: candidate.dirty_ratio, default=None)

    async def _compact(self, work: Plan, keys_max: int) -> None:
        directories, log = self._partitions.directories, work.log
        new_table = partial(self._partitions.new_last_offsets, limit=keys_max)
        in_thread = asyncio.get_running_loop().run_in_executor
        before = sum(segment.size for segment in work.segments)
        result = await in_thread(None, clean, work, new_table, self._stopped.is_set)
        if directories.logs.get(log.name) is not log:
            discard(result)
            return  # The topic was deleted meanwhile.
        gone = finish(work, result)
        if gone is None:
            return  # The log was moved or truncated, or its segments were deleted meanwhile.
        directories.cleaned(log, result.end_offset)
        after = sum(replacement.new.size for replacement in result.replacements)
        _log.info(
            "%s: compacted up to offset %d: %d of %d bytes remain",
            log,
            result.end_offset,
            after,
            before,
        )
        directories.files.remove(gone)
