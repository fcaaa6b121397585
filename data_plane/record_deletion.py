"""DeleteRecords on the partitions that this broker leads. KIP-107.

The leader moves its log start offset at once. The response waits until every live replica has moved
its log start offset, too. Followers report their log start offsets when they fetch.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from bridgehead.kafka_wire.errors import ApiError, ErrorCode
from data_plane.partition import Partition
from data_plane.partitions import Partitions


class RecordDeletion:
    """See broker_proxy.apis.records.delete_records. `is_live`: is a broker registered?"""

    def __init__(self, partitions: Partitions, is_live: Callable[[int], bool]) -> None:
        self._partitions = partitions
        self._is_live = is_live
        self._waiting: set[asyncio.Event] = set()

    def high_watermark(self, topic: str, partition: int) -> int:
        local = self._partitions.get(topic, partition)
        local.require_leader()
        return local.high_watermark

    def log_start_offset(self, topic: str, partition: int) -> int:
        local = self._partitions.get(topic, partition)
        local.require_leader()
        return local.log.start_offset

    def low_watermark(self, topic: str, partition: int) -> int:
        local = self._partitions.get(topic, partition)
        local.require_leader()
        return self._low_watermark(local)

    def follower_fetched(self, partition: Partition, broker_id: int, start_offset: int) -> None:
        """Record a follower's log start offset."""
        state = partition.isr_state
        follower = state.followers.get(broker_id) if state is not None else None
        if follower is not None and follower.log_start_offset != start_offset:
            follower.log_start_offset = start_offset
            if self._waiting:
                partition.notify()

    def brokers_changed(self) -> None:
        """Check the waiting requests: they no longer wait for a follower that has stopped."""
        for changed in self._waiting:
            changed.set()

    async def delete_before(self, topic: str, partition: int, offset: int, timeout_s: float) -> int:
        local = self._partitions.get(topic, partition)
        local.require_leader()
        if not 0 <= offset <= local.high_watermark:
            raise ApiError(ErrorCode.OFFSET_OUT_OF_RANGE)
        if local.log.advance_start(offset):
            local.log.delete_old_segments(self._partitions.now_ms(), local.high_watermark)
            self._partitions.write_checkpoints()
            local.notify()
        await self._wait(local, offset, timeout_s)
        return self._low_watermark(local)

    async def _wait(self, partition: Partition, offset: int, timeout_s: float) -> None:
        changed = asyncio.Event()
        partition.watch(changed.set)
        self._waiting.add(changed)
        try:
            async with asyncio.timeout(timeout_s):
                while self._low_watermark(partition) < offset:
                    await changed.wait()
                    changed.clear()
                    partition.require_leader()
        except TimeoutError:
            raise ApiError(ErrorCode.REQUEST_TIMED_OUT) from None
        finally:
            partition.unwatch(changed.set)
            self._waiting.discard(changed)

    def _low_watermark(self, partition: Partition) -> int:
        """Return the smallest log start offset of the live replicas."""
        followers = partition.isr_state.followers if partition.isr_state is not None else {}
        starts = [
            follower.log_start_offset
            for replica, follower in followers.items()
            if self._is_live(replica)
        ]
        return min([partition.log.start_offset, *starts])
