"""A leader's changes of the ISR reach the controller, one request at a time."""

from __future__ import annotations

import asyncio
from collections import Counter
from pathlib import Path

import pytest

from bridgehead.kafka_wire.errors import ErrorCode
from bridgehead.kafka_wire.messages.alter_partition import (
    AlterPartitionRequest,
    AlterPartitionResponse,
    AlterPartitionTopicData,
    AlterPartitionTopicDataPartitionData,
)
from data_plane.partition import Partition
from data_plane.replication.isr_changes import IsrChanges
from tests.unit.data_plane.logs import TOPIC_ID
from tests.unit.data_plane.replicas import View, replica


class Controller:
    """Answers with the errors in `errors`, then with success; collects the requests."""

    def __init__(self, *errors: ErrorCode) -> None:
        self.errors = list(errors)
        self.asked: list[AlterPartitionRequest] = []
        self.counted: Counter[str] = Counter()
        self.decided = asyncio.Event()

    async def alter(self, request: AlterPartitionRequest) -> AlterPartitionResponse:
        await asyncio.sleep(0)
        self.asked.append(request)
        ((row,),) = (topic.partitions for topic in request.topics)
        error = self.errors.pop(0) if self.errors else ErrorCode.NONE
        isr = [epoch.broker_id for epoch in row.new_isr_with_epochs]
        response = AlterPartitionTopicDataPartitionData(
            0, error, 1, row.leader_epoch, isr, 0, row.partition_epoch + 1
        )
        if not self.errors:
            self.decided.set()
        return AlterPartitionResponse(topics=[AlterPartitionTopicData(TOPIC_ID, "", [response])])

    def isr_expanded(self) -> None:
        self.counted["expanded"] += 1

    def isr_shrunk(self) -> None:
        self.counted["shrunk"] += 1

    def isr_update_failed(self) -> None:
        self.counted["failed"] += 1


def a_leader(folder: Path, controller: Controller) -> tuple[Partition, IsrChanges]:
    changes = IsrChanges(1, lambda: 77, controller.alter, controller, lambda _: True, 10_000)
    partition = replica(folder, 1, changes)  # type: ignore[arg-type]
    partition.apply(View(1, 4, 8, (1,)))
    return partition, changes


async def settled(controller: Controller) -> None:
    await asyncio.wait_for(controller.decided.wait(), 10)
    for _ in range(3):
        await asyncio.sleep(0)


async def test_accepted_change_is_committed_and_counted(tmp_path: Path) -> None:
    controller = Controller()
    partition, _ = a_leader(tmp_path, controller)
    partition.follower_fetched(2, 0)
    assert partition.isr == (1,)
    await settled(controller)
    assert partition.isr == (1, 2)
    assert controller.counted == {"expanded": 1}
    (request,) = controller.asked
    assert (request.broker_id, request.broker_epoch) == (1, 77)


async def test_undecided_change_is_sent_again(tmp_path: Path) -> None:
    controller = Controller(ErrorCode.NOT_CONTROLLER, ErrorCode.NOT_CONTROLLER)
    partition, _ = a_leader(tmp_path, controller)
    partition.follower_fetched(2, 0)
    controller.decided.clear()
    while len(controller.asked) < 3:
        await asyncio.sleep(0.01)
    await asyncio.sleep(0)
    assert partition.isr == (1, 2)
    assert controller.counted == {"failed": 2, "expanded": 1}


async def test_change_is_counted_once_if_metadata_precedes_the_response(tmp_path: Path) -> None:
    controller = Controller()
    partition, _ = a_leader(tmp_path, controller)
    partition.follower_fetched(2, 0)
    await asyncio.sleep(0)  # The request is in flight.
    partition.apply(View(1, 4, 9, (1, 2)))
    await settled(controller)
    assert partition.isr == (1, 2)
    assert controller.counted == {"expanded": 1}


async def test_rejected_replica_may_join_later(tmp_path: Path) -> None:
    controller = Controller(ErrorCode.INELIGIBLE_REPLICA)
    partition, _ = a_leader(tmp_path, controller)
    partition.follower_fetched(2, 0)
    await settled(controller)
    assert partition.isr == (1,)
    controller.decided.clear()
    partition.follower_fetched(2, 0)
    await settled(controller)
    assert partition.isr == (1, 2)


async def test_change_without_a_result_is_not_sent_again_before_a_pause(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without the pause, the broker would send requests as fast as the controller answers them."""
    monkeypatch.setattr("data_plane.replication.isr_changes._RETRY_S", 1000)
    controller, sent = Controller(), 0

    async def omits_the_result(_request: AlterPartitionRequest) -> AlterPartitionResponse:
        nonlocal sent
        sent += 1
        await asyncio.sleep(0)
        return AlterPartitionResponse(topics=[])

    monkeypatch.setattr(controller, "alter", omits_the_result)
    partition, changes = a_leader(tmp_path, controller)
    partition.follower_fetched(2, 0)
    for _ in range(20):
        await asyncio.sleep(0)
    assert sent == 1
    await changes.stop()


async def test_change_is_sent_again_after_an_unexpected_failure(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """If it were not sent again, its proposal would block every later change of this ISR."""
    controller = Controller()
    alter, failures = controller.alter, [ValueError("a custom principal serde")]

    async def fails_once(request: AlterPartitionRequest) -> AlterPartitionResponse:
        if failures:
            raise failures.pop()
        return await alter(request)

    controller.alter = fails_once  # type: ignore[method-assign]
    partition, _ = a_leader(tmp_path, controller)
    partition.follower_fetched(2, 0)
    await settled(controller)
    assert partition.isr == (1, 2)
    assert "AlterPartition failed" in caplog.text
