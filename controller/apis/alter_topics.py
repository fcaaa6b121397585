"""AlterTopics of KIP-4, key 10001, version 0: partitions, replication factor or assignment in one.

KIP-4 §Alter Topic Request. The seed's cases, in its order:

1. An assignment is given: it alone counts. Partitions that exist are reassigned where theirs
   differs, others are added.
2. Else a replication factor: replicas are placed anew, for the partitions that exist (2.2), or for
   as many as are asked for (2.1). Then as 1.
3. Else a number of partitions: fewer than there are is INVALID_PARTITIONS (3.1); replicas are
   placed for those that are added (3.2). Then as 1.

Behaviour: asynchronous, so nobody waits. Needs Alter on the cluster. A topic that comes several
times is altered as its last entry says, and answered once. What is as it should be needs no write.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, ClassVar, Final

from bridgehead.kafka_wire.error_responses import error_response
from bridgehead.kafka_wire.errors import ApiError, ErrorCode
from bridgehead.kafka_wire.messages.drafted.alter_topics import (
    AlterTopic,
    AlterTopicResult,
    AlterTopicsRequest,
    AlterTopicsResponse,
)
from cluster_model.authorization import CLUSTER_NAME
from cluster_model.elections import elect_new
from cluster_model.image import MetadataImage, Topic
from cluster_model.placement import BrokerOrder, MixedRacksError, assign_replicas, start_index
from cluster_model.reassignments import PartitionAssignment, begin, complete, reassigned
from cluster_model.records import PartitionRecord, Record, Replicas
from controller.apis.base import DONE, Decided, Decision, Outcome, RequestContext
from controller.apis.topic_assignments import (
    PARTITIONS_IN_ONE_MULTI,
    partitions_max,
    too_many_partitions,
)
from controller.policy_questions import alteration, targets

NOT_DEFINED: Final = -1


class AlterTopics:
    """See the module."""

    api_key: ClassVar[int] = 10001

    def decide(
        self,
        context: RequestContext,
        request: AlterTopicsRequest,
        image: MetadataImage,
        settled: Mapping[str, Outcome],
    ) -> Decision:
        """See AdminApi.decide."""
        allowed = context.authorize("ALTER", "CLUSTER", CLUSTER_NAME)
        elements: list[Decided] = []
        for name, asked in {topic.topic: topic for topic in request.topics}.items():
            if name in settled:
                continue
            try:
                if not allowed:
                    raise ApiError(ErrorCode.CLUSTER_AUTHORIZATION_FAILED)
                elements.append(_alter(context, asked, image))
            except ApiError as refused:
                elements.append(Decided(name, Outcome(refused.error, refused.message)))
        return Decision(elements)

    def conflict(self, element: str) -> Outcome:
        """The topic's znodes are not what the image says."""
        return Outcome(ErrorCode.UNKNOWN_SERVER_ERROR)

    def answer(
        self,
        context: RequestContext,
        request: AlterTopicsRequest,
        outcomes: Mapping[str, Outcome],
        image: MetadataImage,
        unfinished: frozenset[str],
    ) -> AlterTopicsResponse:
        """See AdminApi.answer."""
        names = dict.fromkeys(topic.topic for topic in request.topics)
        return AlterTopicsResponse(
            topics=[AlterTopicResult(topic=n, error_code=outcomes[n].error) for n in names]
        )

    def refuse(
        self, request: AlterTopicsRequest, version: int, error: ErrorCode, message: str | None
    ) -> Any:
        """See AdminApi.refuse."""
        return error_response(self.api_key, request, version, error, message)


def _alter(context: RequestContext, asked: AlterTopic, image: MetadataImage) -> Decided:
    topic = image.topics.get(asked.topic)
    if topic is None or asked.topic in image.deletions:
        raise ApiError(
            ErrorCode.INVALID_TOPIC_EXCEPTION, f"The topic '{asked.topic}' does not exist."
        )
    if topic.adding or topic.removing:
        raise ApiError(
            ErrorCode.REASSIGNMENT_IN_PROGRESS,
            f"A partition reassignment is in progress for the topic '{asked.topic}'.",
        )
    wanted = _wanted(asked, topic, image)
    generated = not asked.replica_assignment
    judged = partial(
        alteration, context.principal, topic.name, image, _whole(topic, wanted), generated
    )
    return replace(_carry_out(topic, wanted, image), question=judged)


def _wanted(asked: AlterTopic, topic: Topic, image: MetadataImage) -> dict[int, Replicas]:
    """Return the replicas of the partitions that are named, by the seed's cases."""
    if asked.replica_assignment:
        given = {each.partition: tuple(each.replicas) for each in asked.replica_assignment}
        _check_given(given, topic, image)
        return given
    current = len(topic.assignment)
    factor, partitions = asked.replication_factor, asked.partitions
    if partitions != NOT_DEFINED and partitions < max(current, 1):
        raise ApiError(
            ErrorCode.INVALID_PARTITIONS,
            f"Topic currently has {current} partitions, and cannot have {partitions}.",
        )
    if factor != NOT_DEFINED:
        count = current if partitions == NOT_DEFINED else partitions
        return dict(enumerate(_place(topic, 0, count, factor, image)))
    if partitions == NOT_DEFINED:
        raise ApiError(ErrorCode.INVALID_REQUEST, "Nothing is asked of the topic.")
    factor = len(topic.assignment[0]) if topic.assignment else 0
    added = _place(topic, current, partitions - current, factor, image)
    return dict(enumerate(added, start=current))


def _place(
    topic: Topic, first: int, count: int, factor: int, image: MetadataImage
) -> Sequence[Replicas]:
    """Place `count` partitions from number `first` on, beginning at partition 0's first replica."""
    if factor <= 0 or factor > len(image.brokers):
        raise ApiError(
            ErrorCode.INVALID_REPLICATION_FACTOR,
            f"Replication factor {factor} is not between 1 and {len(image.brokers)} brokers.",
        )
    if first + count > partitions_max(factor):
        raise too_many_partitions(first + count)
    if not count:
        return ()
    racks = {broker_id: broker.rack for broker_id, broker in image.brokers.items()}
    firsts = [replicas[0] for replicas in topic.assignment[:1] if replicas]
    start = start_index(list(racks), firsts[0]) if firsts else 0
    try:
        return assign_replicas(
            BrokerOrder.of(racks),
            partitions=count,
            replication_factor=factor,
            start=start,
            shift=start,
            first_partition=first,
        )
    except MixedRacksError:
        raise ApiError(ErrorCode.UNKNOWN_SERVER_ERROR) from None


def _check_given(given: Mapping[int, Replicas], topic: Topic, image: MetadataImage) -> None:
    current = len(topic.assignment)
    added = sorted(number for number in given if not 0 <= number < current)
    if added != list(range(current, current + len(added))):
        raise _assignment(f"Partitions {added} do not follow on partition {current - 1}.")
    for number, replicas in sorted(given.items()):
        if not replicas:
            raise _assignment(f"Partition {number} has no replicas.")
        if len(set(replicas)) != len(replicas):
            raise _assignment(f"Partition {number} names a broker twice.")
        before = topic.assignment[number] if number < current else ()
        if unknown := [b for b in replicas if b not in image.brokers and b not in before]:
            raise _assignment(f"Partition {number} names broker {unknown[0]}, which is not alive.")
    if current + len(added) > partitions_max(max(map(len, given.values()))):
        raise too_many_partitions(current + len(added))


def _whole(topic: Topic, wanted: Mapping[int, Replicas]) -> list[Replicas]:
    """Return the topic's replicas as they shall be."""
    after = dict(enumerate(targets(topic))) | dict(wanted)
    return [after[number] for number in sorted(after)]


def _carry_out(topic: Topic, wanted: Mapping[int, Replicas], image: MetadataImage) -> Decided:
    """Return the records: the topic's znode once, then the states of what begins."""
    live, epoch = image.brokers, image.controller_epoch
    current = len(topic.assignment)
    changes: dict[int, PartitionAssignment] = {}
    states: list[Record] = []
    new_states: list[Record] = []
    for number, replicas in sorted(wanted.items()):
        if number >= current:
            new = elect_new(replicas, live, epoch)
            if new is not None:
                new_states.append(PartitionRecord(topic.name, number, new))
        elif replicas != topic.assignment[number]:
            change = PartitionAssignment(topic.assignment[number]).reassign_to(replicas)
            state = topic.states[number]
            changes[number] = change
            if state.partition_epoch < 0:
                continue  # Never had a leader: it gets one among the replicas that it has then.
            after = begin(state, change, live, epoch)
            if change.is_complete(after, live):
                after = complete(state, change, live, epoch)
                changes[number] = PartitionAssignment(change.target)
            states.append(PartitionRecord(topic.name, number, after))
    added = tuple(wanted[number] for number in sorted(wanted) if number >= current)
    if not changes and not added:
        return Decided(topic.name, DONE)
    record = reassigned(topic, changes)
    grown = replace(record, assignment=record.assignment + added)
    if len(states) + len(new_states) <= PARTITIONS_IN_ONE_MULTI:
        return Decided(topic.name, DONE, (grown, *states, *new_states))
    return Decided(topic.name, DONE, (grown, *states), tuple(new_states))


def _assignment(text: str) -> ApiError:
    return ApiError(ErrorCode.INVALID_REPLICA_ASSIGNMENT, text)
