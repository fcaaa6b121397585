"""CreatePartitions, key 37, versions 0 to 3 (kafka-semantics 3.5). KIP-195.

Behaviour: `count` is the new total. New replicas follow the placement of the old ones: the
start is fixed by partition 0's first replica. The answer waits for a leader of every partition.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import Any, ClassVar

from bridgehead.kafka_wire.error_responses import error_response
from bridgehead.kafka_wire.errors import ApiError, ErrorCode
from bridgehead.kafka_wire.messages.create_partitions import (
    CreatePartitionsRequest,
    CreatePartitionsResponse,
    CreatePartitionsTopic,
    CreatePartitionsTopicResult,
)
from cluster_model.elections import elect_new
from cluster_model.image import MetadataImage, Topic
from cluster_model.placement import BrokerOrder, MixedRacksError, assign_replicas, start_index
from cluster_model.records import AssignmentRecord, PartitionRecord, Record, Replicas
from cluster_model.scala_order import int_set_order
from cluster_model.topic_names import has_a_path
from controller.apis.base import Decided, Decision, Outcome, RequestContext, Wait, WaitFor
from controller.apis.topic_assignments import (
    PARTITIONS_IN_ONE_MULTI,
    partitions_max,
    too_many_partitions,
)
from controller.policy_questions import alteration


class CreatePartitions:
    """See the module."""

    api_key: ClassVar[int] = 37

    def decide(
        self,
        context: RequestContext,
        request: CreatePartitionsRequest,
        image: MetadataImage,
        settled: Mapping[str, Outcome],
    ) -> Decision:
        """See AdminApi.decide."""
        counts = Counter(topic.name for topic in request.topics)
        if self._breaks_the_request(context, request, counts, image):
            fault = Outcome(ErrorCode.UNKNOWN_SERVER_ERROR)
            return Decision([Decided(name, fault) for name in counts if name not in settled])
        elements: dict[str, Decided] = {}
        for topic in request.topics:
            name = topic.name
            if name in settled or name in elements:
                continue
            try:
                if counts[name] > 1:
                    raise ApiError(ErrorCode.INVALID_REQUEST, "Duplicate topic in request.")
                added = self._plan(context, topic, image)
            except ApiError as refused:
                elements[name] = Decided(name, Outcome(refused.error, refused.message))
                continue
            grown = image.topics[name].assignment + added
            generated = topic.assignments is None
            elements[name] = replace(
                self._grow(image.topics[name], added, image, request.validate_only),
                question=partial(alteration, context.principal, name, image, grown, generated),
            )
        waits = WaitFor.NOTHING if request.validate_only else WaitFor.LEADERS
        names = {name: name for name in counts}
        return Decision(list(elements.values()), Wait(waits, names, request.timeout_ms))

    def _breaks_the_request(
        self,
        context: RequestContext,
        request: CreatePartitionsRequest,
        counts: Mapping[str, int],
        image: MetadataImage,
    ) -> bool:
        """True where Kafka's look into ZooKeeper fails for all: a name has no path there."""
        return any(
            not has_a_path(topic.name)
            and counts[topic.name] == 1
            and topic.name not in image.topics
            and context.authorize(
                "ALTER", "TOPIC", topic.name, log_if_denied=False, log_if_allowed=False
            )
            for topic in request.topics
        )

    def _plan(
        self, context: RequestContext, asked: CreatePartitionsTopic, image: MetadataImage
    ) -> tuple[Replicas, ...]:
        """Every check in Kafka's order; return the replicas of the new partitions."""
        name = asked.name
        if not context.authorize("ALTER", "TOPIC", name):
            raise ApiError(
                ErrorCode.TOPIC_AUTHORIZATION_FAILED, "The topic authorization is failed."
            )
        if name in image.deletions:
            raise ApiError(ErrorCode.INVALID_TOPIC_EXCEPTION, "The topic is queued for deletion.")
        topic = image.topics.get(name)
        if topic is None:
            raise ApiError(
                ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"The topic '{name}' does not exist."
            )
        if topic.adding or topic.removing:
            raise ApiError(
                ErrorCode.REASSIGNMENT_IN_PROGRESS,
                f"A partition reassignment is in progress for the topic '{name}'.",
            )
        current = len(topic.assignment)
        if asked.count < current:
            raise ApiError(
                ErrorCode.INVALID_PARTITIONS,
                f"Topic currently has {current} partitions, "
                f"which is higher than the requested {asked.count}.",
            )
        if asked.count == current:
            raise ApiError(ErrorCode.INVALID_PARTITIONS, f"Topic already has {current} partitions.")
        factor = len(topic.assignment[0]) if topic.assignment else 0
        if not factor:
            # Written by hand, or by a Kafka that took an empty list (kafka-semantics 9.7).
            raise ApiError(
                ErrorCode.INVALID_REPLICATION_FACTOR, "Replication factor must be larger than 0."
            )
        if asked.count > partitions_max(factor):
            raise too_many_partitions(asked.count)
        if asked.assignments is not None:
            given = [tuple(assignment.broker_ids) for assignment in asked.assignments]
            return _check_given(given, topic, asked.count, image)
        return self._place(topic, asked.count, image)

    def _place(self, topic: Topic, count: int, image: MetadataImage) -> tuple[Replicas, ...]:
        racks = {broker_id: broker.rack for broker_id, broker in image.brokers.items()}
        first, factor = topic.assignment[0][0], len(topic.assignment[0])
        if factor > len(racks):
            raise ApiError(
                ErrorCode.INVALID_REPLICATION_FACTOR,
                f"Replication factor: {factor} larger than available brokers: {len(racks)}.",
            )
        start = start_index(list(racks), first)
        try:
            return assign_replicas(
                BrokerOrder.of(racks),
                partitions=count - len(topic.assignment),
                replication_factor=factor,
                start=start,
                shift=start,
                first_partition=len(topic.assignment),
            )
        except MixedRacksError:
            raise ApiError(ErrorCode.UNKNOWN_SERVER_ERROR) from None

    def _grow(
        self,
        topic: Topic,
        added: tuple[Replicas, ...],
        image: MetadataImage,
        validate_only: bool,
    ) -> Decided:
        done = Outcome(ErrorCode.NONE)
        if validate_only:
            return Decided(topic.name, done)
        grown = AssignmentRecord(topic.name, topic.assignment + added)
        states: list[Record] = []
        for partition, replicas in enumerate(added, start=len(topic.assignment)):
            state = elect_new(replicas, image.brokers, image.controller_epoch)
            if state is not None:
                states.append(PartitionRecord(topic.name, partition, state))
        if len(states) <= PARTITIONS_IN_ONE_MULTI:
            return Decided(topic.name, done, (grown, *states), mutations=len(added))
        return Decided(topic.name, done, (grown,), tuple(states), len(added))

    def conflict(self, element: str) -> Outcome:
        """The topic's znodes are not what the image says."""
        return Outcome(ErrorCode.UNKNOWN_SERVER_ERROR)

    def answer(
        self,
        context: RequestContext,
        request: CreatePartitionsRequest,
        outcomes: Mapping[str, Outcome],
        image: MetadataImage,
        unfinished: frozenset[str],
    ) -> CreatePartitionsResponse:
        """See AdminApi.answer. A topic asked for twice is answered once, unless all failed."""
        results = []
        names = [topic.name for topic in request.topics]
        faulty = any(not has_a_path(name) for name in names) and all(
            outcomes[name].error is ErrorCode.UNKNOWN_SERVER_ERROR for name in names
        )
        for name in names if faulty else dict.fromkeys(names):
            outcome = outcomes[name]
            late = name in unfinished
            results.append(
                CreatePartitionsTopicResult(
                    name=name,
                    error_code=ErrorCode.REQUEST_TIMED_OUT if late else outcome.error,
                    error_message=None if late else outcome.message,
                )
            )
        return CreatePartitionsResponse(results=results)

    def refuse(
        self, request: CreatePartitionsRequest, version: int, error: ErrorCode, message: str | None
    ) -> Any:
        """See AdminApi.refuse."""
        return error_response(self.api_key, request, version, error, message)


def _check_given(
    given: list[Replicas], topic: Topic, count: int, image: MetadataImage
) -> tuple[Replicas, ...]:
    """The checks of a client's own assignment, in Kafka's order and words."""
    unknown = int_set_order((b for replicas in given for b in replicas), without=image.brokers)
    if unknown:
        raise _assignment(
            f"Unknown broker(s) in replica assignment: {', '.join(map(str, unknown))}."
        )
    current = len(topic.assignment)
    if len(given) != count - current:
        raise _assignment(
            f"Increasing the number of partitions by {count - current} "
            f"but {len(given)} assignments provided."
        )
    factor = len(topic.assignment[0])
    uneven: dict[int, int] = {}
    for partition, replicas in enumerate(given, start=current):
        if not replicas:
            raise _assignment(f"Cannot have replication factor of 0 for partition id {partition}.")
        if len(set(replicas)) != len(replicas):
            raise _assignment(
                "Duplicate brokers not allowed in replica assignment: "
                f"{', '.join(map(str, sorted(replicas)))} for partition id {partition}."
            )
        if len(replicas) != factor:
            uneven[partition] = len(replicas)
    if uneven:
        partitions = ", ".join(map(str, uneven))
        factors = ", ".join(map(str, uneven.values()))
        raise _assignment(
            "Inconsistent replication factor between partitions, partition 0 has "
            f"{factor} while partitions [{partitions}] have replication factors "
            f"[{factors}], respectively."
        )
    return tuple(given)


def _assignment(text: str) -> ApiError:
    return ApiError(ErrorCode.INVALID_REPLICA_ASSIGNMENT, text)
