"""CreatePartitions, key 37, versions 0 to 3 (docs/kafka/topics.md#createpartitions). KIP-195.

`count` is the topic's new number of partitions. As in Kafka, added partitions are placed as if the
placement of the whole topic had started at partition 0's first replica. The response waits until
every partition has a leader.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import ClassVar

from bridgehead.kafka_wire.api_key import ApiKey
from bridgehead.kafka_wire.errors import ApiError, ErrorCode
from bridgehead.kafka_wire.messages.create_partitions import (
    CreatePartitionsRequest,
    CreatePartitionsResponse,
    CreatePartitionsTopic,
    CreatePartitionsTopicResult,
)
from cluster_model.image import MetadataImage, Topic
from cluster_model.records import AssignmentRecord, Replicas
from cluster_model.scala_order import int_set_order
from cluster_model.topic_names import has_valid_path
from controller.apis.base import (
    DONE,
    AdminApi,
    Decided,
    Decision,
    Outcome,
    RequestContext,
    Results,
    Wait,
    WaitFor,
)
from controller.apis.policy_check import alteration
from controller.apis.topic_assignments import (
    PARTITIONS_IN_ONE_MULTI,
    check_partitions_of_request,
    invalid_assignment,
    new_states,
    partitions_max,
    place_partitions,
    too_many_partitions,
)


class CreatePartitions(AdminApi):
    """Decides CreatePartitions requests."""

    api_key: ClassVar[ApiKey] = ApiKey.CREATE_PARTITIONS

    def decide(
        self,
        context: RequestContext,
        request: CreatePartitionsRequest,
        image: MetadataImage,
        committed: Mapping[str, Outcome],
    ) -> Decision:
        counts = Counter(topic.name for topic in request.topics)
        if self._fails_whole_request(context, request, counts, image):
            fault = Outcome(ErrorCode.UNKNOWN_SERVER_ERROR)
            return Decision([Decided(name, fault) for name in counts if name not in committed])
        elements: dict[str, Decided] = {}
        partitions = 0  # of all topics that passed their checks
        for topic in request.topics:
            name = topic.name
            if name in committed or name in elements:
                continue
            try:
                if counts[name] > 1:
                    raise ApiError(ErrorCode.INVALID_REQUEST, "Duplicate topic in request.")
                added = self._plan(context, topic, image, partitions)
            except ApiError as error:
                elements[name] = Decided(name, Outcome.of(error))
                continue
            partitions += len(added)
            grown = image.topics[name].assignment + added
            generated = topic.assignments is None
            elements[name] = replace(
                self._grow(image.topics[name], added, image, request.validate_only),
                policy_check=partial(
                    alteration, context.client.principal, name, image, grown, generated
                ),
            )
        waits = WaitFor.NOTHING if request.validate_only else WaitFor.LEADERS
        names = {name: name for name in counts}
        return Decision(list(elements.values()), Wait(waits, names, request.timeout_ms))

    def _fails_whole_request(
        self,
        context: RequestContext,
        request: CreatePartitionsRequest,
        counts: Mapping[str, int],
        image: MetadataImage,
    ) -> bool:
        """True if Kafka fails the whole request with an unexpected exception.

        There are two causes: only some brokers have a rack, or a topic name is not a valid path.
        """
        if len({broker.rack is None for broker in image.brokers.values()}) > 1:
            return True
        return any(
            not has_valid_path(topic.name)
            and counts[topic.name] == 1
            and topic.name not in image.topics
            and context.authorize(
                "ALTER", "TOPIC", topic.name, log_if_denied=False, log_if_allowed=False
            )
            for topic in request.topics
        )

    def _plan(
        self,
        context: RequestContext,
        requested: CreatePartitionsTopic,
        image: MetadataImage,
        partitions: int,
    ) -> tuple[Replicas, ...]:
        """Make Kafka's checks in Kafka's order; return the replicas of the new partitions.

        `partitions`: how many the request has added so far.
        """
        name = requested.name
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
        if requested.count < current:
            raise ApiError(
                ErrorCode.INVALID_PARTITIONS,
                f"Topic currently has {current} partitions, "
                f"which is higher than the requested {requested.count}.",
            )
        if requested.count == current:
            raise ApiError(ErrorCode.INVALID_PARTITIONS, f"Topic already has {current} partitions.")
        factor = len(topic.assignment[0]) if topic.assignment else 0
        if not factor:
            # The topic was written by hand, or created by a Kafka that accepted an empty list of
            # replicas (docs/kafka/misbehaviour.md).
            raise ApiError(
                ErrorCode.INVALID_REPLICATION_FACTOR, "Replication factor must be larger than 0."
            )
        if requested.count > partitions_max(factor):
            raise too_many_partitions(requested.count)
        check_partitions_of_request(partitions + requested.count - current)
        if requested.assignments is not None:
            assignments = [tuple(assignment.broker_ids) for assignment in requested.assignments]
            return _check_given(assignments, topic, requested.count, image)
        return self._place(topic, requested.count, image)

    def _place(self, topic: Topic, count: int, image: MetadataImage) -> tuple[Replicas, ...]:
        factor, available = len(topic.assignment[0]), len(image.brokers)
        if factor > available:
            raise ApiError(
                ErrorCode.INVALID_REPLICATION_FACTOR,
                f"Replication factor: {factor} larger than available brokers: {available}.",
            )
        current = len(topic.assignment)
        return place_partitions(topic, current, count - current, factor, image)

    def _grow(
        self,
        topic: Topic,
        added: tuple[Replicas, ...],
        image: MetadataImage,
        validate_only: bool,
    ) -> Decided:
        if validate_only:
            return Decided(topic.name, DONE)
        grown = AssignmentRecord(topic.name, topic.assignment + added)
        states = new_states(topic.name, enumerate(added, start=len(topic.assignment)), image)
        if len(states) <= PARTITIONS_IN_ONE_MULTI:
            return Decided(topic.name, DONE, (grown, *states), mutations=len(added))
        return Decided(topic.name, DONE, (grown,), tuple(states), len(added))

    def response(
        self, context: RequestContext, request: CreatePartitionsRequest, results: Results
    ) -> CreatePartitionsResponse:
        """See AdminApi.response. Lists a duplicate topic once, unless the whole request failed."""
        rows = []
        names = [topic.name for topic in request.topics]
        # A duplicate topic has UNKNOWN_SERVER_ERROR only if the whole request failed.
        fault = ErrorCode.UNKNOWN_SERVER_ERROR
        failed = all(results.outcomes[name].error is fault for name in names)
        for name in names if failed else dict.fromkeys(names):
            outcome = results.outcomes[name]
            late = name in results.unfinished
            rows.append(
                CreatePartitionsTopicResult(
                    name=name,
                    error_code=ErrorCode.REQUEST_TIMED_OUT if late else outcome.error,
                    error_message=None if late else outcome.message,
                )
            )
        return CreatePartitionsResponse(results=rows)


def _check_given(
    assignment: list[Replicas], topic: Topic, count: int, image: MetadataImage
) -> tuple[Replicas, ...]:
    """Check a client's assignment, in Kafka's order and with Kafka's messages."""
    unknown = int_set_order((b for replicas in assignment for b in replicas), without=image.brokers)
    if unknown:
        raise invalid_assignment(
            f"Unknown broker(s) in replica assignment: {', '.join(map(str, unknown))}."
        )
    current = len(topic.assignment)
    if len(assignment) != count - current:
        raise invalid_assignment(
            f"Increasing the number of partitions by {count - current} "
            f"but {len(assignment)} assignments provided."
        )
    factor = len(topic.assignment[0])
    uneven: dict[int, int] = {}
    for partition, replicas in enumerate(assignment, start=current):
        if not replicas:
            raise invalid_assignment(
                f"Cannot have replication factor of 0 for partition id {partition}."
            )
        if len(set(replicas)) != len(replicas):
            raise invalid_assignment(
                "Duplicate brokers not allowed in replica assignment: "
                f"{', '.join(map(str, sorted(replicas)))} for partition id {partition}."
            )
        if len(replicas) != factor:
            uneven[partition] = len(replicas)
    if uneven:
        partitions = ", ".join(map(str, uneven))
        factors = ", ".join(map(str, uneven.values()))
        raise invalid_assignment(
            "Inconsistent replication factor between partitions, partition 0 has "
            f"{factor} while partitions [{partitions}] have replication factors "
            f"[{factors}], respectively."
        )
    return tuple(assignment)
