"""DeleteRecords responds when every live replica has moved its log start offset."""

from __future__ import annotations

import asyncio
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from bridgehead.kafka_wire.errors import ApiError, ErrorCode
from data_plane.partitions import Partitions
from data_plane.record_deletion import RecordDeletion
from tests.unit.data_plane.logs import NOW, TOPIC_ID, batch, directories
from tests.unit.data_plane.replicas import Isrs, View


class Leader:
    """Broker 1 leads t-0 with ten records; broker 2 is in the ISR, and broker 3 is not."""

    def __init__(self, folder: Path) -> None:
        self.live = {1, 2, 3}
        logs = directories(folder)
        self.partitions = Partitions(1, logs, cast(Any, None), lambda: NOW, Isrs())
        self.deletion = RecordDeletion(self.partitions, lambda broker: broker in self.live)
        topic = SimpleNamespace(topic_id=TOPIC_ID, partitions={0: View(1, 0, 0, (1, 2))})
        self.partitions.apply({"t": topic}, ["t"])
        self.partition = self.partitions.by_name["t", 0]
        for _ in range(10):
            self.partition.append(batch(b"v"), 1, NOW)
        self.fetched(2, 0)
        self.fetched(3, 0)

    def fetched(self, broker: int, start_offset: int) -> None:
        self.partition.follower_fetched(broker, 10)
        self.deletion.follower_fetched(self.partition, broker, start_offset)

    async def delete(self, offset: int, timeout_s: float = 10) -> asyncio.Task[int]:
        """Start a deletion, and return its task."""
        work = self.deletion.delete_before("t", 0, offset, timeout_s)
        task = asyncio.ensure_future(work)
        await asyncio.sleep(0)
        return task


async def test_a_deletion_waits_for_every_live_replica(tmp_path: Path) -> None:
    leader = Leader(tmp_path)
    request = await leader.delete(4)
    leader.fetched(2, 4)
    await asyncio.sleep(0)
    assert not request.done()
    leader.fetched(3, 4)
    assert await request == 4


async def test_a_deletion_does_not_wait_for_a_replica_that_stopped(tmp_path: Path) -> None:
    """The replica is outside the ISR, so its stop does not change the partition's state."""
    leader = Leader(tmp_path)
    request = await leader.delete(4)
    leader.fetched(2, 4)
    leader.live.remove(3)
    leader.deletion.brokers_changed()
    assert await request == 4


async def test_a_deletion_times_out(tmp_path: Path) -> None:
    request = await Leader(tmp_path).delete(4, timeout_s=0)
    with pytest.raises(ApiError) as rejected:
        await request
    assert rejected.value.error is ErrorCode.REQUEST_TIMED_OUT
