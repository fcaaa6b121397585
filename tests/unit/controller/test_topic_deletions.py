"""The background job that deletes marked topics: its steps and multis, and which topics stay."""

from __future__ import annotations

from collections.abc import Iterator

from cluster_model.image import MetadataImage
from cluster_model.records import (
    DeletionMarkerRecord,
    PartitionRecord,
    PartitionState,
    Record,
    TopicRecord,
)
from controller.loop.background_jobs import delete_topics
from controller.loop.loop import OPERATIONS_PER_MULTI
from controller.loop.pending_request import topics_of
from controller.store.plan import plan_multis
from tests.unit.controller.topic_decisions import image

DEAD = 9


def marked(name: str, partitions: int = 1, replica: int = 1) -> Iterator[Record]:
    """Yield the records of a topic that is marked for deletion."""
    yield TopicRecord(name, name.encode().ljust(16), ((replica,),) * partitions, {})
    state = PartitionState(
        leader=1, leader_epoch=0, isr=(1,), controller_epoch=5, partition_epoch=0
    )
    for partition in range(partitions):
        yield PartitionRecord(name, partition, state)
    yield DeletionMarkerRecord(name)


def cluster(*topics: Iterator[Record]) -> MetadataImage:
    return image().replay([record for topic in topics for record in topic])


def deleted(before: MetadataImage) -> list[list[str]]:
    """Return the topics that each step deletes."""
    now, steps = before, []
    for records in delete_topics(lambda: now, sorted(before.deletions)):  # noqa: B023
        now = now.replay(records)
        steps.append(sorted(topics_of(records)))
    return steps


def test_one_step_deletes_many_topics() -> None:
    names = [f"t{number:04}" for number in range(801)]
    assert deleted(cluster(*map(marked, names))) == [names[:800], names[800:]]


def test_one_multi_deletes_as_many_whole_topics_as_fit() -> None:
    names = [f"t{number:03}" for number in range(69)]
    before = cluster(*(marked(name, 5) for name in names))
    (records,) = delete_topics(lambda: before, names)
    planned = list(plan_multis(records, before, OPERATIONS_PER_MULTI))
    assert [len(operations) for operations in planned] == [476, 476, 14]
    for operations in planned:
        # The last operation of each topic deletes its marker.
        assert operations[-1].path.startswith("/admin/delete_topics/")


def test_a_topic_that_does_not_fit_in_a_multi_begins_a_new_one() -> None:
    before = cluster(marked("a"), marked("b", 300), marked("c"))
    (records,) = delete_topics(lambda: before, ["a", "b", "c"])
    planned = list(plan_multis(records, before, OPERATIONS_PER_MULTI))
    assert [len(operations) for operations in planned] == [6, 480, 604 - 480 + 6]


def test_a_topic_that_does_not_fit_in_a_step_is_deleted_alone() -> None:
    topics = marked("a"), marked("b", 2_500), marked("c")
    assert deleted(cluster(*topics)) == [["a"], ["b"], ["c"]]


def test_a_topic_with_a_replica_on_a_dead_broker_is_not_deleted() -> None:
    topics = marked("a"), marked("b", replica=DEAD), marked("c")
    assert deleted(cluster(*topics)) == [["a", "c"]]
    assert deleted(cluster(marked("b", replica=DEAD))) == []


def test_a_topic_that_vanished_between_two_steps_is_skipped() -> None:
    names = [f"t{number:03}" for number in range(801)]
    now = cluster(*(marked(name) for name in names))
    job = delete_topics(lambda: now, names)
    assert len(next(job)) == 800
    now = cluster(marked("other"))
    assert list(job) == []
