"""The background job that elects leaders: what one step examines and changes."""

from __future__ import annotations

from dataclasses import replace

from cluster_model.image import MetadataImage
from cluster_model.records import PartitionRecord, PartitionState, Record, TopicRecord
from controller.loop.background_jobs import Elections, elect_leaders
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
