"""AlterTopics of KIP-4, key 10001, version 0: partitions, replication factor or assignment.

The cases of KIP-4 §Alter Topic Request, in the KIP's order:

1. The request has an assignment: the request's partition count and replication factor are ignored.
   Existing partitions whose replicas differ are reassigned; new partitions are added.
2. The request has a replication factor: the controller places all partitions again. If the request
   also has a partition count, the controller places that many partitions (2.1), otherwise as many
   as exist (2.2). Then it applies this assignment as in case 1.
3. The request has only a partition count: the controller places the added partitions (3.2), and
   adds them as in case 1. Here and in 2.1, a partition count below the current one gets
   INVALID_PARTITIONS (3.1).

The response does not wait for the reassignment. The client needs ALTER on Cluster. If a topic
occurs several times, its last entry counts, and the response lists it once. An alteration that
changes nothing writes nothing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import ClassVar, Final

from bridgehead.kafka_wire.api_key import ApiKey
from bridgehead.kafka_wire.errors import ApiError, ErrorCode
from bridgehead.kafka_wire.messages.drafted.alter_topics import (
    AlterTopic,
    AlterTopicResult,
    AlterTopicsRequest,
    AlterTopicsResponse,
)
from cluster_model.acls.authorization import CLUSTER_NAME
from cluster_model.image import MetadataImage, Topic
from cluster_model.partitions.reassignments import PartitionAssignment, reassigned
from cluster_model.policy_state import targets
from cluster_model.records import Record, Replicas
from controller.apis.base import DONE, AdminApi, Decided, Decision, Outcome, RequestContext, Results
from controller.apis.policy_check import alteration
from controller.apis.topic_assignments import (
    PARTITIONS_IN_ONE_MULTI,
    invalid_assignment,
    new_states,
    partitions_max,
    place_partitions,
    start_reassignment,
    too_many_partitions,
)

NOT_DEFINED: Final = -1


class AlterTopics(AdminApi):
    """Decides AlterTopics requests."""

    api_key: ClassVar[ApiKey] = ApiKey.ALTER_TOPICS

    def decide(
        self,
        context: RequestContext,
        request: AlterTopicsRequest,
        image: MetadataImage,
        committed: Mapping[str, Outcome],
    ) -> Decision:
        allowed = context.authorize("ALTER", "CLUSTER", CLUSTER_NAME)
        elements: list[Decided] = []
        for name, requested in {topic.topic: topic for topic in request.topics}.items():
            if name in committed:
                continue
            try:
                if not allowed:
                    raise ApiError(ErrorCode.CLUSTER_AUTHORIZATION_FAILED)
                elements.append(_alter(context, requested, image))
            except ApiError as error:
                elements.append(Decided(name, Outcome.of(error)))
        return Decision(elements)

    def response(
        self, context: RequestContext, request: AlterTopicsRequest, results: Results
    ) -> AlterTopicsResponse:
        names = dict.fromkeys(topic.topic for topic in request.topics)
        return AlterTopicsResponse(
            topics=[AlterTopicResult(topic=n, error_code=results.outcomes[n].error) for n in names]
        )


def _alter(context: RequestContext, requested: AlterTopic, image: MetadataImage) -> Decided:
    topic = image.topics.get(requested.topic)
    if topic is None or requested.topic in image.deletions:
        raise ApiError(
            ErrorCode.INVALID_TOPIC_EXCEPTION, f"The topic '{requested.topic}' does not exist."
        )
    if topic.adding or topic.removing:
        raise ApiError(
            ErrorCode.REASSIGNMENT_IN_PROGRESS,
            f"A partition reassignment is in progress for the topic '{requested.topic}'.",
        )
    new = _new_replicas(requested, topic, image)
    after = dict(enumerate(targets(topic))) | dict(new)
    assignment = [after[number] for number in sorted(after)]
    generated = not requested.replica_assignment
    check = partial(alteration, context.client.principal, topic.name, image, assignment, generated)
    return replace(_decided(topic, new, image), policy_check=check)


def _new_replicas(requested: AlterTopic, topic: Topic, image: MetadataImage) -> dict[int, Replicas]:
    """Return the new replicas of each partition, by the case of the KIP that applies."""
    if requested.replica_assignment:
        replicas_of = {
            assignment.partition: tuple(assignment.replicas)
            for assignment in requested.replica_assignment
        }
        _check_given(replicas_of, topic, image)
        return replicas_of
    current = len(topic.assignment)
    factor, partitions = requested.replication_factor, requested.partitions
    if partitions != NOT_DEFINED and partitions < max(current, 1):
        raise ApiError(
            ErrorCode.INVALID_PARTITIONS,
            f"Topic currently has {current} partitions, and cannot have {partitions}.",
        )
    if factor != NOT_DEFINED:
        count = current if partitions == NOT_DEFINED else partitions
        return dict(enumerate(_place(topic, 0, count, factor, image)))
    if partitions == NOT_DEFINED:
        raise ApiError(ErrorCode.INVALID_REQUEST, "The request changes nothing about the topic.")
    factor = len(topic.assignment[0]) if topic.assignment else 0
    added = _place(topic, current, partitions - current, factor, image)
    return dict(enumerate(added, start=current))


def _place(
    topic: Topic, first: int, count: int, factor: int, image: MetadataImage
) -> Sequence[Replicas]:
    if factor <= 0 or factor > len(image.brokers):
        raise ApiError(
            ErrorCode.INVALID_REPLICATION_FACTOR,
            f"Replication factor {factor} is not between 1 and {len(image.brokers)} live brokers.",
        )
    if first + count > partitions_max(factor):
        raise too_many_partitions(first + count)
    return place_partitions(topic, first, count, factor, image) if count else ()


def _check_given(assignment: Mapping[int, Replicas], topic: Topic, image: MetadataImage) -> None:
    current = len(topic.assignment)
    added = sorted(number for number in assignment if not 0 <= number < current)
    if added != list(range(current, current + len(added))):
        raise invalid_assignment(f"Added partitions {added} must be numbered from {current} on.")
    for number, replicas in sorted(assignment.items()):
        if not replicas:
            raise invalid_assignment(f"Partition {number} has no replicas.")
        if len(set(replicas)) != len(replicas):
            raise invalid_assignment(f"Partition {number} has a duplicate replica.")
        before = topic.assignment[number] if number < current else ()
        if unknown := [b for b in replicas if b not in image.brokers and b not in before]:
            raise invalid_assignment(f"Broker {unknown[0]} of partition {number} is not alive.")
    if current + len(added) > partitions_max(max(map(len, assignment.values()))):
        raise too_many_partitions(current + len(added))


def _decided(topic: Topic, new: Mapping[int, Replicas], image: MetadataImage) -> Decided:
    """Return the records: the topic's znode, then the states of changed and added partitions."""
    current = len(topic.assignment)
    changes: dict[int, PartitionAssignment] = {}
    changed: list[Record] = []
    for number, replicas in sorted(new.items()):
        if number < current and replicas != topic.assignment[number]:
            change = PartitionAssignment(topic.assignment[number]).reassign_to(replicas)
            changes[number], state = start_reassignment(topic, number, change, image)
            changed += [state] if state else []
    added = [(number, new[number]) for number in sorted(new) if number >= current]
    if not changes and not added:
        return Decided(topic.name, DONE)
    record = reassigned(topic, changes)
    grown = replace(
        record, assignment=record.assignment + tuple(added_replicas for _, added_replicas in added)
    )
    states = new_states(topic.name, added, image)
    if len(changed) + len(states) <= PARTITIONS_IN_ONE_MULTI:
        return Decided(topic.name, DONE, (grown, *changed, *states))
    return Decided(topic.name, DONE, (grown, *changed), tuple(states))
