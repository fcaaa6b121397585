"""AlterPartitionReassignments, key 45, version 0 (docs/kafka/partitions.md). KIP-455.

The response is sent when every reassignment has started or is rejected. The controller completes
the started ones later. `timeout_ms` is ignored. Null replicas cancel a reassignment. If a partition
occurs several times, its last entry counts, and the response lists it once.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import partial
from typing import Any, ClassVar, Final

from bridgehead.kafka_wire.api_key import ApiKey
from bridgehead.kafka_wire.errors import ApiError, ErrorCode
from bridgehead.kafka_wire.messages.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    AlterPartitionReassignmentsResponse,
    ReassignablePartitionResponse,
    ReassignableTopicResponse,
)
from cluster_model.acls.authorization import CLUSTER_NAME
from cluster_model.image import MetadataImage
from cluster_model.partitions.reassignments import PartitionAssignment, reassigned
from cluster_model.policy_state import targets
from cluster_model.records import PartitionRecord, Record, Replicas
from cluster_model.znodes.layout import TopicZnode
from controller.apis.base import DONE, AdminApi, Decided, Decision, Outcome, RequestContext, Results
from controller.apis.partition_elements import (
    by_topic,
    partition_element,
)
from controller.apis.policy_check import alteration
from controller.apis.topic_assignments import invalid_assignment, start_reassignment

# The topic's znode shares a multi of at most 900,000 bytes with the first partition's state.
_ZNODE_BYTES_MAX: Final = 800_000
_NO_SUCH_PARTITION: Final = Outcome(
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "The partition does not exist."
)


class AlterPartitionReassignments(AdminApi):
    """Decides AlterPartitionReassignments requests."""

    api_key: ClassVar[ApiKey] = ApiKey.ALTER_PARTITION_REASSIGNMENTS

    def decide(
        self,
        context: RequestContext,
        request: AlterPartitionReassignmentsRequest,
        image: MetadataImage,
        committed: Mapping[str, Outcome],
    ) -> Decision:
        if not context.authorize("ALTER", "CLUSTER", CLUSTER_NAME):
            denied = Outcome.with_default_text(ErrorCode.CLUSTER_AUTHORIZATION_FAILED)
            return Decision.of_whole_request(denied)
        elements: list[Decided] = []
        started: dict[str, dict[int, PartitionAssignment]] = {}
        for (name, partition), target in _requested(request).items():
            element = partition_element(name, partition)
            if element in committed:
                continue
            change = _reassignment(name, partition, target, image)
            if isinstance(change, Outcome):
                elements.append(Decided(element, change))
            else:
                started.setdefault(name, {})[partition] = change
        for name, changes in started.items():
            elements += _begin(context, name, changes, image)
        return Decision(elements)

    def conflict(self, element: str) -> Outcome:
        return Outcome.with_default_text(ErrorCode.UNKNOWN_SERVER_ERROR)

    def response(
        self, context: RequestContext, request: AlterPartitionReassignmentsRequest, results: Results
    ) -> Any:
        """See AdminApi.response. Topics without partitions are omitted."""
        rejected = self.whole_request_error(context, request, results)
        if rejected is not None:
            return rejected
        responses = []
        for name, partitions in by_topic(_requested(request)).items():
            rows = []
            for partition in partitions:
                outcome = results.outcomes[partition_element(name, partition)]
                rows.append(
                    ReassignablePartitionResponse(
                        partition_index=partition,
                        error_code=outcome.error,
                        error_message=outcome.message,
                    )
                )
            responses.append(ReassignableTopicResponse(name=name, partitions=rows))
        return AlterPartitionReassignmentsResponse(error_message="", responses=responses)


def _requested(
    request: AlterPartitionReassignmentsRequest,
) -> dict[tuple[str, int], Replicas | None]:
    return {
        (topic.name, partition.partition_index): None
        if partition.replicas is None
        else tuple(partition.replicas)
        for topic in request.topics
        for partition in topic.partitions
    }


def _reassignment(
    name: str, partition: int, target: Replicas | None, image: MetadataImage
) -> PartitionAssignment | Outcome:
    """Make Kafka's checks in Kafka's order; return the reassignment or the first error.

    Kafka checks the replicas before it checks that the partition exists. The replicas of an unknown
    partition are therefore checked as if all of them were added.
    """
    topic = image.topics.get(name)
    exists = topic is not None and 0 <= partition < len(topic.assignment)
    current = PartitionAssignment(())
    if topic is not None and exists:
        current = PartitionAssignment.of(topic, partition)
    if target is None and not current.is_reassigning:
        return Outcome.with_default_text(ErrorCode.NO_REASSIGNMENT_IN_PROGRESS)
    if target is not None:
        try:
            _check_replicas(target, current, image)
        except ApiError as rejection:
            return Outcome.of(rejection)
    if not exists or name in image.deletions:
        return _NO_SUCH_PARTITION
    return current.reassign_to(current.origin if target is None else target)


def _check_replicas(target: Replicas, current: PartitionAssignment, image: MetadataImage) -> None:
    if not target:
        raise invalid_assignment("Empty replica list specified in partition reassignment.")
    if len(set(target)) != len(target):
        raise invalid_assignment(
            f"Duplicate replica ids in partition reassignment replica list: {_buffer(target)}"
        )
    if min(target) < 0:
        raise invalid_assignment(f"Invalid broker id in replica list: {_buffer(target)}")
    # Added replicas must be alive now. Other replicas may be dead; the reassignment waits for them.
    if any(replica not in image.brokers for replica in current.reassign_to(target).adding):
        live = ", ".join(map(str, sorted(image.brokers)))
        raise invalid_assignment(
            "Replica assignment has brokers that are not alive. "
            f"Replica list: {_buffer(target)}, live broker list: Set({live})"
        )


def _begin(
    context: RequestContext,
    name: str,
    changes: Mapping[int, PartitionAssignment],
    image: MetadataImage,
) -> Iterable[Decided]:
    """Yield the partitions of one topic. The first partition's records include the topic's znode.

    Writing that znode starts the reassignment of all partitions. If the controller fails before it
    has written every state, the next controller continues the reassignments. The resent request
    starts the reassignment again for each partition that has no outcome yet.
    """
    topic = image.topics[name]
    states: dict[int, PartitionRecord | None] = {}
    written: dict[int, PartitionAssignment] = {}
    for partition, change in changes.items():
        written[partition], states[partition] = start_reassignment(topic, partition, change, image)
    record = reassigned(topic, written)
    size = len(TopicZnode.encode(record.assignment, topic.topic_id, record.adding, record.removing))
    head: tuple[Record, ...] = (record,)
    after_all = targets(topic)
    for partition, change in changes.items():
        after_all[partition] = change.target
    check = partial(alteration, context.client.principal, name, image, after_all, False)
    for partition in changes:
        element = partition_element(name, partition)
        if size > _ZNODE_BYTES_MAX:
            too_large = Outcome.with_default_text(ErrorCode.UNKNOWN_SERVER_ERROR)
            yield Decided(element, too_large)
            continue
        state = states[partition]
        yield Decided(element, DONE, head + ((state,) if state else ()), policy_check=check)
        head = ()


def _buffer(replicas: Replicas) -> str:
    """Return the text of a Scala list, as in Kafka's messages."""
    return f"ArrayBuffer({', '.join(map(str, replicas))})"
