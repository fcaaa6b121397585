"""The background job that deletes marked topics: how many fit in a multi, and which stay."""

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
from controller.background_jobs import delete_topics
from controller.pending_request import topics_of
from controller.store.plan import plan_operations
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
    """Return the topics that each multi deletes."""
    now, multis = before, []
    for records in delete_topics(lambda: now, sorted(before.deletions)):  # noqa: B023
        assert len(plan_operations(records, now)) <= 480 or len(records) == 1
        now = now.replay(records)
        multis.append(sorted(topics_of(records)))
    return multis


def test_one_multi_deletes_as_many_topics_as_fit() -> None:
    small = [f"small-{number:03}" for number in range(100)]
    wide = [f"wide-{number}" for number in range(4)]
    topics = [*(marked(name) for name in small), *(marked(name, 100) for name in wide)]
    assert deleted(cluster(*topics)) == [
        small[:80],
        [*small[80:], wide[0]],
        wide[1:3],
        wide[3:],
    ]


def test_a_topic_that_fits_in_no_multi_is_deleted_alone() -> None:
    topics = marked("a"), marked("b", 300), marked("c")
    assert deleted(cluster(*topics)) == [["a"], ["b"], ["c"]]


def test_a_topic_with_a_replica_on_a_dead_broker_stays() -> None:
    topics = marked("a"), marked("b", replica=DEAD), marked("c")
    assert deleted(cluster(*topics)) == [["a", "c"]]
    assert deleted(cluster(marked("b", replica=DEAD))) == []


def test_a_topic_that_vanished_between_two_multis_is_skipped() -> None:
    names = [f"t{number:03}" for number in range(81)]
    now = cluster(*(marked(name) for name in names))
    job = delete_topics(lambda: now, names)
    assert len(next(job)) == 80
    now = cluster(marked("other"))
    assert list(job) == []
