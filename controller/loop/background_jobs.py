"""The controller's background jobs, in steps small enough not to delay requests.

A job is a generator. Each step reads the current image and yields records. The loop commits them,
in several multis if necessary, before it does anything else, so a job never works on a stale image.
The loop handles a round of requests between two steps. A job yields an empty list if it has nothing
to commit yet; then it is the next job's turn.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Container, Iterable, Iterator
from dataclasses import dataclass
from functools import cache
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
    PartitionState,
    Record,
    Replicas,
    TokenRemovalRecord,
    TopicIdRecord,
    TopicRemovalRecord,
)

ImageNow = Callable[[], MetadataImage]
Job = Iterator[list[Record]]
UncleanElection = Callable[[MetadataImage, str], bool]
# A new partition takes up to three operations, and a round plans at most 480 for each multi.
_PARTITIONS_PER_MULTI: Final = 160
# A step of elections ends when it has examined this many topics and partitions, or has made this
# many changes. It takes some 10 ms without changes, and up to some 100 ms with changes.
_EXAMINED_PER_STEP: Final = 5_000
_CHANGES_PER_STEP: Final = 2_400
# The most operations in a step of topic deletions. A topic that needs more has a step of its own.
_DELETE_OPERATIONS_PER_STEP: Final = 4_800
# Removing a token takes two operations: one deletes its znode, one creates a notification.
_TOKENS_PER_MULTI: Final = 200


@dataclass(frozen=True, slots=True)
class Elections:
    """The rules of elections. `unclean`: whether a topic allows unclean elections.

    `stores_records`: the value of bridgehead.data.plane. `restarted`: live brokers that have just
    restarted, and are therefore treated as stopped (KIP-380).
    """

    unclean: UncleanElection
    stores_records: bool = False
    restarted: frozenset[int] = frozenset()

    def live(self, image: MetadataImage) -> Container[int]:
        """Return the brokers that may lead."""
        return frozenset(image.brokers) - self.restarted if self.restarted else image.brokers


def elect_leaders(image_now: ImageNow, names: Iterable[str], elections: Elections) -> Job:
    """Adapt leaders and ISRs to the live brokers (docs/kafka/partitions.md#leader-elections).

    Also writes the partition states that a failed controller did not write.
    """
    records: list[Record] = []
    examined = 0
    for name in names:
        partition = 0
        while (topic := image_now().topics.get(name)) is not None:
            examined += 1 + len(topic.states) - partition
            partition = _react(image_now(), topic, partition, records, elections)
            if len(records) < _CHANGES_PER_STEP:
                break
            yield records
            records, examined = [], 0
        if examined >= _EXAMINED_PER_STEP:
            yield records
            records, examined = [], 0
    if records:
        yield records


def _react(
    image: MetadataImage,
    topic: Topic,
    first: int,
    records: list[Record],
    elections: Elections,
) -> int:
    """Add records from partition `first` on, until a step is full; return the next partition."""
    if topic.name in image.deletions:
        return len(topic.states)
    live, epoch = elections.live(image), image.controller_epoch
    allowed = elections.unclean(image, topic.name)

    @cache  # Many partitions of a topic have equal states and replicas.
    def react(state: PartitionState, assignment: Replicas) -> PartitionState | None:
        return react_to_live_brokers(
            state,
            assignment,
            live,
            controller_epoch=epoch,
            unclean=allowed,
            stores_records=elections.stores_records,
        )

    for partition in range(first, len(topic.states)):
        after = react(topic.states[partition], topic.assignment[partition])
        if after is not None:
            records.append(PartitionRecord(topic.name, partition, after))
            if len(records) >= _CHANGES_PER_STEP:
                return partition + 1
    return len(topic.states)


def write_partition_states(image_now: ImageNow, records: Iterable[Record]) -> Job:
    """Write the states of new partitions that did not fit into their topic's multi."""
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
    """True, as in Kafka, if all replicas are on live brokers and no reassignment runs."""
    if topic.adding or topic.removing:
        return False
    return all(broker in image.brokers for replicas in topic.assignment for broker in replicas)


def delete_topics(image_now: ImageNow, names: Iterable[str]) -> Job:
    """Delete the marked topics that may be deleted, as many in one step as fit."""
    waiting = deque(names)
    while waiting:
        image, room, removals = image_now(), _DELETE_OPERATIONS_PER_STEP, list[Record]()
        while waiting and (not removals or _delete_operations(image, waiting[0]) <= room):
            topic = image.topics.get(name := waiting.popleft())
            if topic is not None and name in image.deletions and may_be_deleted(image, topic):
                removals.append(TopicRemovalRecord(name))
                room -= _delete_operations(image, name)
        if removals:
            yield removals


def _delete_operations(image: MetadataImage, name: str) -> int:
    """Return how many operations the deletion of a topic takes at most.

    Each partition has two znodes. The other znodes are the topic, its config, its marker and the
    parent of its partitions.
    """
    topic = image.topics.get(name)
    return 0 if topic is None else 2 * len(topic.states) + 4


def complete_reassignments(
    image_now: ImageNow, names: Iterable[str], *, stores_records: bool = False
) -> Job:
    """Advance reassignments as far as the live brokers allow (docs/kafka/partitions.md).

    First the new replicas join the ISR, then another multi removes the old ones. A reassignment
    to a dead broker waits until the live brokers change. With `stores_records` only the leader
    extends the ISR, and the reassignment continues when the leader has extended it.
    """
    for name in names:
        topic = image_now().topics.get(name)
        if topic is None or not (topic.adding or topic.removing):
            continue
        while not stores_records and (records := _joining(image_now(), name)):
            yield records
        while records := _leaving(image_now(), name):
            yield records
        yield from delete_topics(image_now, [name])  # A deletion waits for the reassignment.


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
    """Remove the delegation tokens that have expired by now (docs/kafka/delegation-tokens.md)."""
    expired = sorted(t.token_id for t in image_now().tokens.values() if t.is_expired(now_ms))
    for start in range(0, len(expired), _TOKENS_PER_MULTI):
        tokens = image_now().tokens
        batch = expired[start : start + _TOKENS_PER_MULTI]
        # A request may have removed some tokens meanwhile. Expired tokens cannot be renewed.
        yield [TokenRemovalRecord(token_id) for token_id in batch if token_id in tokens]


def repair_topics(
    image_now: ImageNow,
    orphan_markers: Iterable[str],
    without_id: Iterable[str],
    new_topic_id: Callable[[], bytes],
) -> Job:
    """Remove deletion markers without a topic, and add missing topic ids."""
    for name in orphan_markers:
        yield [DeletionMarkerRemovalRecord(name)]
    for name in without_id:
        if name in image_now().topics:
            yield [TopicIdRecord(name, new_topic_id())]
