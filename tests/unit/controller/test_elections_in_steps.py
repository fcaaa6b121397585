"""The background job that elects leaders: what one step examines and changes."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from cluster_model.image import MetadataImage
from cluster_model.records import PartitionRecord, PartitionState, Record, TopicRecord
from cluster_model.session_state import SessionState
from controller.loop.background_jobs import Elections, elect_leaders
from controller.store.zookeeper import ZooKeeperStore
from tests.unit.controller.topic_decisions import image

CLEAN = Elections(lambda _image, _topic: False)


def led_by_1(topics: int, partitions: int) -> MetadataImage:
    """Return an image in which broker 1 leads every partition, and broker 2 is in every ISR."""
    records: list[Record] = []
    state = PartitionState(
        leader=1, leader_epoch=0, isr=(1, 2), controller_epoch=5, partition_epoch=0
    )
    for number in range(topics):
        name = f"t{number:05}"
        records.append(TopicRecord(name, name.encode().ljust(16), ((1, 2),) * partitions, {}))
        records += [PartitionRecord(name, partition, state) for partition in range(partitions)]
    return image().replay(records)


def steps(before: MetadataImage) -> tuple[list[int], MetadataImage]:
    """Return the number of changes in each step, and the image after all steps."""
    now, sizes = before, []
    for records in elect_leaders(lambda: now, sorted(before.topics), CLEAN):  # noqa: B023
        now = now.replay(records)
        sizes.append(len(records))
    return sizes, now


def without_broker_1(before: MetadataImage) -> MetadataImage:
    return replace(before, brokers=before.brokers.delete(1))


def test_a_step_changes_many_topics() -> None:
    sizes, after = steps(without_broker_1(led_by_1(50, 100)))
    assert sizes == [2_400, 2_400, 200]
    assert {state.leader for topic in after.topics.values() for state in topic.states} == {2}


def test_a_step_ends_within_a_topic_with_many_partitions() -> None:
    sizes, after = steps(without_broker_1(led_by_1(1, 3_000)))
    assert sizes == [2_400, 600]
    assert {state.leader for state in after.topics["t00000"].states} == {2}


def test_a_step_without_changes_ends_after_a_number_of_partitions() -> None:
    assert steps(led_by_1(120, 100))[0] == [0, 0]
    assert steps(led_by_1(6_000, 1))[0] == [0, 0]


def test_partitions_with_equal_states_and_different_replicas_are_decided_separately() -> None:
    state = PartitionState(
        leader=1, leader_epoch=0, isr=(1, 2, 3), controller_epoch=5, partition_epoch=0
    )
    assignment = ((1, 2, 3), (1, 3, 2), (1, 2, 3))
    states = [PartitionRecord("t", partition, state) for partition in range(3)]
    before = image().replay([TopicRecord("t", b"t".ljust(16), assignment, {}), *states])
    _, after = steps(without_broker_1(before))
    assert [after_state.leader for after_state in after.topics["t"].states] == [2, 3, 2]


# The events of an election are written before its multi (the claim) is sent to ZooKeeper.


class _Log:
    def __init__(self) -> None:
        self.buffered: list[str] = []

    def append(self, event: Any) -> None:
        self.buffered.append(event.kind)

    def flush(self) -> None:
        self.buffered.clear()


class _Session:
    """Rejects every claim, and records which events were unwritten when the claim was sent."""

    session_id = 1

    def __init__(self, log: _Log) -> None:
        self._log = log
        self.unwritten: list[list[str]] = []

    async def open(self, _timeout_s: float) -> None:
        pass

    async def exists(self, _path: str) -> None:
        return None

    def encode(self, _operation: Any) -> bytes:
        return b""

    async def multi(self, _operations: Any) -> Any:
        self.unwritten.append(list(self._log.buffered))
        raise InterruptedError


class _Store(ZooKeeperStore):
    def __init__(self, log: _Log) -> None:
        self.session_made = _Session(log)
        super().__init__("", session_timeout_ms=1, on_state=_ignore, log=log, now_s=lambda: 0.0)

    def _new_session(self) -> Any:
        return self.session_made

    async def _read_epoch(self) -> tuple[int, int]:
        return 1, 1


def _ignore(_state: SessionState) -> None:
    pass


async def test_all_events_are_written_before_the_claim_is_sent() -> None:
    store = _Store(_Log())
    await store.open(1)
    with pytest.raises(InterruptedError):
        await store.elect(1, 0)
    assert store.session_made.unwritten == [[]]
