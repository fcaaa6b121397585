"""What the controller does of its own accord, in pieces small enough to let requests through.

Each job is a generator: asked for more, it looks at the image of that moment and yields records
that fit one multi, which the loop commits before it asks anybody else. So a job never works on
an image that another write has overtaken.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Final

from cluster_model.elections import react_to_live_brokers
from cluster_model.image import MetadataImage, Topic
from cluster_model.reassignments import (
    PartitionAssignment,
    complete,
    join,
    reassigned,
    reassignments,
)
from cluster_model.records import (
    DeletionMarkerRemovalRecord,
    PartitionRecord,
    Record,
    TokenRemovalRecord,
    TopicIdRecord,
    TopicRemovalRecord,
)

ImageNow = Callable[[], MetadataImage]
Job = Iterator[list[Record]]
UncleanElection = Callable[[MetadataImage, str], bool]
# A new partition takes three operations at most, so this fills one multi and never more.
_PARTITIONS_PER_MULTI: Final = 160
# A look at 100,000 healthy partitions must not hold up heartbeats: some 10 ms between turns.
_TOPICS_PER_TURN: Final = 50
# Each takes two operations: its znode goes, and a notification comes.
_TOKENS_PER_MULTI: Final = 200


def sweep(image_now: ImageNow, names: Iterable[str], unclean: UncleanElection) -> Job:
    """Give every partition the leader and ISR that the live brokers allow (kafka-semantics 5.3).

    Also completes topics whose partition states a died controller had not written.
    """
    records: list[Record] = []
    for count, name in enumerate(names):
        partition = 0
        while (topic := image_now().topics.get(name)) is not None:
            partition = _react(image_now(), topic, partition, records, unclean)
            if len(records) < _PARTITIONS_PER_MULTI:
                break
            yield records
            records = []
        if count % _TOPICS_PER_TURN == _TOPICS_PER_TURN - 1:
            yield records  # Perhaps nothing: a turn for the requests that wait.
            records = []
    if records:
        yield records


def _react(
    image: MetadataImage,
    topic: Topic,
    first: int,
    records: list[Record],
    unclean: UncleanElection,
) -> int:
    """Add what the partitions from `first` on need, up to a multi; return where to go on."""
    if topic.name in image.deletions:
        return len(topic.states)
    live, epoch = image.brokers, image.controller_epoch
    allowed = unclean(image, topic.name)
    for partition in range(first, len(topic.states)):
        after = react_to_live_brokers(
            topic.states[partition],
            topic.assignment[partition],
            live,
            controller_epoch=epoch,
            unclean=allowed,
        )
        if after is not None:
            records.append(PartitionRecord(topic.name, partition, after))
            if len(records) >= _PARTITIONS_PER_MULTI:
                return partition + 1
    return len(topic.states)


def follow(image_now: ImageNow, records: Iterable[Record]) -> Job:
    """Write the partition states of a topic that was too large for one multi."""
    batch: list[Record] = []
    for record in records:
        assert isinstance(record, PartitionRecord)
        topic = image_now().topics.get(record.topic)
        if topic is None or topic.states[record.partition].partition_epoch >= 0:
            continue
        batch.append(record)
        if len(batch) >= _PARTITIONS_PER_MULTI:
            yield batch
            batch = []
    if batch:
        yield batch


def may_be_deleted(image: MetadataImage, topic: Topic) -> bool:
    """Every replica is on a live broker and no reassignment runs (else Kafka waits too)."""
    if topic.adding or topic.removing:
        return False
    return all(broker in image.brokers for replicas in topic.assignment for broker in replicas)


def delete_topics(image_now: ImageNow, names: Iterable[str]) -> Job:
    """Remove the topics that are marked for deletion and may go."""
    for name in names:
        image = image_now()
        topic = image.topics.get(name)
        if topic is not None and name in image.deletions and may_be_deleted(image, topic):
            yield [TopicRemovalRecord(name)]


def complete_reassignments(image_now: ImageNow, names: Iterable[str]) -> Job:
    """Bring reassignments forward as far as the live brokers allow (kafka-semantics 5.5).

    First the new replicas join the ISR, then, in a write of its own, the old ones go. What waits
    for a dead broker stays as it is, and is looked at again when a broker comes.
    """
    for name in names:
        topic = image_now().topics.get(name)
        if topic is None or not (topic.adding or topic.removing):
            continue
        while records := _joining(image_now(), name):
            yield records
        while records := _leaving(image_now(), name):
            yield records
        yield from delete_topics(image_now, [name])  # It may have waited for this.


def _joining(image: MetadataImage, name: str) -> list[Record]:
    topic, records = image.topics.get(name), list[Record]()
    for partition in reassignments(topic) if topic is not None else ():
        assert topic is not None
        state, assignment = topic.states[partition], PartitionAssignment.of(topic, partition)
        after = join(state, assignment, image.brokers, image.controller_epoch)
        if after is not None and len(records) < _PARTITIONS_PER_MULTI:
            records.append(PartitionRecord(name, partition, after))
    return records


def _leaving(image: MetadataImage, name: str) -> list[Record]:
    topic = image.topics.get(name)
    changes: dict[int, PartitionAssignment] = {}
    states: list[Record] = []
    for partition in reassignments(topic) if topic is not None else ():
        assert topic is not None
        state, assignment = topic.states[partition], PartitionAssignment.of(topic, partition)
        if assignment.is_complete(state, image.brokers) and len(states) < _PARTITIONS_PER_MULTI:
            after = complete(state, assignment, image.brokers, image.controller_epoch)
            changes[partition] = PartitionAssignment(assignment.target)
            states.append(PartitionRecord(name, partition, after))
    return [reassigned(topic, changes), *states] if topic is not None and states else []


def remove_expired_tokens(image_now: ImageNow, now_ms: int) -> Job:
    """Remove the delegation tokens that have expired by now (kafka-semantics 3.11)."""
    gone = sorted(t.token_id for t in image_now().tokens.values() if t.is_expired(now_ms))
    for start in range(0, len(gone), _TOKENS_PER_MULTI):
        tokens = image_now().tokens
        batch = gone[start : start + _TOKENS_PER_MULTI]
        # Meanwhile one may have been removed by a request; none comes to life again.
        yield [TokenRemovalRecord(token_id) for token_id in batch if token_id in tokens]


def tidy_up(
    image_now: ImageNow,
    orphan_markers: Iterable[str],
    without_id: Iterable[str],
    new_topic_id: Callable[[], bytes],
) -> Job:
    """What a new controller finds undone: markers without a topic, topics without an id."""
    for name in orphan_markers:
        yield [DeletionMarkerRemovalRecord(name)]
    for name in without_id:
        if name in image_now().topics:
            yield [TopicIdRecord(name, new_topic_id())]
