"""AlterPartitionReassignments, key 45, version 0 (kafka-semantics 3.12). KIP-455.

Behaviour: the answer comes when the reassignments are under way or refused; `timeout_ms` is not
read. The controller brings them to their end afterwards. Replicas of null cancel a reassignment;
a partition that comes twice is asked for by its last entry, and answered once.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import partial
from typing import Any, ClassVar, Final

from bridgehead.kafka_wire.error_responses import error_response
from bridgehead.kafka_wire.errors import ApiError, ErrorCode
from bridgehead.kafka_wire.messages.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    AlterPartitionReassignmentsResponse,
    ReassignablePartitionResponse,
    ReassignableTopicResponse,
)
from cluster_model.image import MetadataImage
from cluster_model.reassignments import PartitionAssignment, begin, complete, reassigned
from cluster_model.records import PartitionRecord, Record, Replicas
from cluster_model.znodes import TopicZnode
from controller.apis.base import DONE, Decided, Decision, Outcome, RequestContext
from controller.apis.config_changes import CLUSTER_NAME
from controller.apis.partition_elements import (
    WHOLE_REQUEST,
    by_topic,
    partition_element,
)
from controller.policy_questions import alteration, targets

# A multi holds 900,000 bytes (design 5.4); the first partition's state travels with the topic.
_ZNODE_BYTES_MAX: Final = 800_000
_NO_SUCH_PARTITION: Final = Outcome(
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "The partition does not exist."
)


class AlterPartitionReassignments:
    """See the module."""

    api_key: ClassVar[int] = 45

    def decide(
        self,
        context: RequestContext,
        request: AlterPartitionReassignmentsRequest,
        image: MetadataImage,
        settled: Mapping[str, Outcome],
    ) -> Decision:
        """See AdminApi.decide."""
        if not context.authorize("ALTER", "CLUSTER", CLUSTER_NAME):
            denied = Outcome(ErrorCode.CLUSTER_AUTHORIZATION_FAILED)
            return Decision([Decided(WHOLE_REQUEST, denied)])
        elements: list[Decided] = []
        begun: dict[str, dict[int, PartitionAssignment]] = {}
        for (name, partition), target in _asked(request).items():
            element = partition_element(name, partition)
            if element in settled:
                continue
            judged = _judge(name, partition, target, image)
            if isinstance(judged, Outcome):
                elements.append(Decided(element, judged))
            else:
                begun.setdefault(name, {})[partition] = judged
        for name, changes in begun.items():
            elements += _begin(context, name, changes, image)
        return Decision(elements)

    def conflict(self, element: str) -> Outcome:
        """The partition's znodes are not what the image says."""
        error = ErrorCode.UNKNOWN_SERVER_ERROR
        return Outcome(error, error.default_text)

    def answer(
        self,
        context: RequestContext,
        request: AlterPartitionReassignmentsRequest,
        outcomes: Mapping[str, Outcome],
        image: MetadataImage,
        unfinished: frozenset[str],
    ) -> Any:
        """See AdminApi.answer. A topic without partitions is left out."""
        denied = outcomes.get(WHOLE_REQUEST)
        if denied is not None:
            error = denied.error
            return self.refuse(request, context.api_version, error, error.default_text)
        responses = []
        for name, partitions in by_topic(_asked(request)).items():
            results = []
            for partition in partitions:
                outcome = outcomes[partition_element(name, partition)]
                results.append(
                    ReassignablePartitionResponse(
                        partition_index=partition,
                        error_code=outcome.error,
                        error_message=outcome.message,
                    )
                )
            responses.append(ReassignableTopicResponse(name=name, partitions=results))
        return AlterPartitionReassignmentsResponse(error_message="", responses=responses)

    def refuse(
        self,
        request: AlterPartitionReassignmentsRequest,
        version: int,
        error: ErrorCode,
        message: str | None,
    ) -> Any:
        """See AdminApi.refuse."""
        return error_response(self.api_key, request, version, error, message)


def _asked(
    request: AlterPartitionReassignmentsRequest,
) -> dict[tuple[str, int], Replicas | None]:
    return {
        (topic.name, partition.partition_index): None
        if partition.replicas is None
        else tuple(partition.replicas)
        for topic in request.topics
        for partition in topic.partitions
    }


def _judge(
    name: str, partition: int, target: Replicas | None, image: MetadataImage
) -> PartitionAssignment | Outcome:
    """Every check in Kafka's order; return where the partition goes, or the refusal.

    The replicas are looked at before the partition: an unknown one has none, so that all of its
    target are new.
    """
    topic = image.topics.get(name)
    is_there = topic is not None and 0 <= partition < len(topic.assignment)
    current = PartitionAssignment(())
    if topic is not None and is_there:
        current = PartitionAssignment.of(topic, partition)
    if target is None and not current.is_reassigning:
        error = ErrorCode.NO_REASSIGNMENT_IN_PROGRESS
        return Outcome(error, error.default_text)
    if target is not None:
        try:
            _check_replicas(target, current, image)
        except ApiError as refused:
            return Outcome(refused.error, refused.message)
    if not is_there or name in image.deletions:
        return _NO_SUCH_PARTITION
    return current.reassign_to(current.origin if target is None else target)


def _check_replicas(target: Replicas, current: PartitionAssignment, image: MetadataImage) -> None:
    if not target:
        raise _assignment("Empty replica list specified in partition reassignment.")
    if len(set(target)) != len(target):
        raise _assignment(
            f"Duplicate replica ids in partition reassignment replica list: {_buffer(target)}"
        )
    if min(target) < 0:
        raise _assignment(f"Invalid broker id in replica list: {_buffer(target)}")
    # Replicas that were there before may be dead: the reassignment waits for them.
    if any(replica not in image.brokers for replica in current.reassign_to(target).adding):
        live = ", ".join(map(str, sorted(image.brokers)))
        raise _assignment(
            "Replica assignment has brokers that are not alive. "
            f"Replica list: {_buffer(target)}, live broker list: Set({live})"
        )


def _begin(
    context: RequestContext,
    name: str,
    changes: Mapping[int, PartitionAssignment],
    image: MetadataImage,
) -> Iterable[Decided]:
    """Yield the partitions of one topic. The first one brings the topic's znode for all.

    Should the controller go before the others' states are written, the next one sees them under
    reassignment and goes on with them; the request, sent again, begins them anew.
    """
    topic, live, epoch = image.topics[name], image.brokers, image.controller_epoch
    states: dict[int, PartitionRecord] = {}
    written: dict[int, PartitionAssignment] = {}
    for partition, change in changes.items():
        written[partition] = change
        state = topic.states[partition]
        if state.partition_epoch < 0:
            continue  # Never had a leader: it gets one among the replicas that it has then.
        after = begin(state, change, live, epoch)
        if change.is_complete(after, live):
            # Nothing to wait for: what goes, goes at once.
            after = complete(state, change, live, epoch)
            written[partition] = PartitionAssignment(change.target)
        states[partition] = PartitionRecord(name, partition, after)
    record = reassigned(topic, written)
    size = len(TopicZnode.encode(record.assignment, topic.topic_id, record.adding, record.removing))
    head: tuple[Record, ...] = (record,)
    after_all = targets(topic)
    for partition, change in changes.items():
        after_all[partition] = change.target
    judged = partial(alteration, context.principal, name, image, after_all, False)
    for partition in changes:
        element = partition_element(name, partition)
        if size > _ZNODE_BYTES_MAX:
            error = ErrorCode.UNKNOWN_SERVER_ERROR
            yield Decided(element, Outcome(error, error.default_text))
            continue
        state_record = states.get(partition)
        records = head + ((state_record,) if state_record else ())
        yield Decided(element, DONE, records, question=judged)
        head = ()


def _assignment(text: str) -> ApiError:
    return ApiError(ErrorCode.INVALID_REPLICA_ASSIGNMENT, text)


def _buffer(replicas: Replicas) -> str:
    """Render as Kafka's text does, which is Scala's rendering of a list."""
    return f"ArrayBuffer({', '.join(map(str, replicas))})"
