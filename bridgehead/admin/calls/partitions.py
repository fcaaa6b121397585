"""Adds partitions, elects leaders and moves replicas (KIP-195, KIP-460, KIP-455)."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from enum import IntEnum
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeVar

from bridgehead.admin.errors import AdminError, InvalidCallError, KafkaTimeoutError
from bridgehead.admin.requests import Attempt, Batch, BrokerResponse, Plan, Request, Wait, one
from bridgehead.admin.results import TopicPartition, Try
from bridgehead.kafka_wire.api_key import ApiKey

if TYPE_CHECKING:
    from bridgehead.kafka_wire.messages.alter_partition_reassignments import (
        AlterPartitionReassignmentsRequest,
    )
    from bridgehead.kafka_wire.messages.create_partitions import CreatePartitionsRequest
    from bridgehead.kafka_wire.messages.elect_leaders import ElectLeadersRequest
    from bridgehead.kafka_wire.messages.list_partition_reassignments import (
        ListPartitionReassignmentsRequest,
    )

T = TypeVar("T")
_NAMED_MAX: Final = 3  # partitions in the text of an error


class NewPartitions(NamedTuple):
    """The total number of partitions that a topic is to have.

    `assignments` has the broker ids of each new partition. If it is None, the controller chooses
    the brokers.
    """

    total_count: int
    assignments: Sequence[Sequence[int]] | None = None


class ElectionType(IntEnum):
    """PREFERRED elects the first replica if it is in sync. UNCLEAN may elect any live replica."""

    PREFERRED = 0
    UNCLEAN = 1


class PartitionReassignment(NamedTuple):
    """A reassignment in progress, as broker ids."""

    replicas: list[int]
    adding_replicas: list[int]
    removing_replicas: list[int]


def create_partitions(
    new_partitions: Mapping[str, NewPartitions],
    validate_only: bool = False,
    *,
    retry_on_quota_violation: bool = True,
) -> Plan[dict[str, AdminError | None]]:
    """Increase the number of partitions of topics; return the error of each topic (KIP-195).

    After the throttle time, the client resends a topic with THROTTLING_QUOTA_EXCEEDED (KIP-599),
    unless `retry_on_quota_violation` is false.
    """
    from bridgehead.kafka_wire.messages.create_partitions import (
        CreatePartitionsAssignment,
        CreatePartitionsRequest,
        CreatePartitionsTopic,
    )

    def request(left: Mapping[str, NewPartitions]) -> Request:
        wanted = [
            CreatePartitionsTopic(
                name,
                partitions.total_count,
                None
                if partitions.assignments is None
                else [
                    CreatePartitionsAssignment(list(brokers)) for brokers in partitions.assignments
                ],
            )
            for name, partitions in left.items()
        ]

        def build(attempt: Attempt) -> CreatePartitionsRequest:
            return CreatePartitionsRequest(wanted, attempt.timeout_ms, validate_only)

        return Request(ApiKey.CREATE_PARTITIONS, build)

    def results(response: BrokerResponse) -> Iterator[tuple[str, Try[None]]]:
        for result in response.message.results:
            yield result.name, response.done(result)

    quota = retry_on_quota_violation
    batch = Batch(new_partitions, request, results, retry_on_quota_violation=quota)
    return (yield from batch.errors())


def elect_leaders(
    election_type: ElectionType, partitions: Collection[TopicPartition] | None = None
) -> Plan[dict[TopicPartition, AdminError | None]]:
    """Elect leaders; return the error of each partition (KIP-460).

    ELECTION_NOT_NEEDED means for PREFERRED that the preferred replica already leads the partition.
    For UNCLEAN it means that a live replica leads the partition. If `partitions` is None, the
    leaders of all partitions are elected. The result then has only the partitions that needed an
    election.

    Raises:
        KafkaError: the whole request is rejected.
    """
    from bridgehead.kafka_wire.messages.elect_leaders import ElectLeadersRequest, TopicPartitions

    wanted = None if partitions is None else _by_topic(partitions)

    def build(attempt: Attempt) -> ElectLeadersRequest:
        topics = wanted and [
            TopicPartitions(name, list(numbers)) for name, numbers in wanted.items()
        ]
        listed = None if wanted is None else topics or []
        return ElectLeadersRequest(election_type, listed, attempt.timeout_ms)

    unclean = election_type is ElectionType.UNCLEAN
    because = "an unclean election" if unclean else ""
    response = yield from one(
        Request(ApiKey.ELECT_LEADERS, build, min_version=int(unclean), because=because)
    )
    response.check(response.message.error_code)
    return {
        TopicPartition(topic.topic, partition.partition_id): response.error(
            partition.error_code, partition.error_message
        )
        for topic in response.message.replica_election_results
        for partition in topic.partition_result
    }


def alter_partition_reassignments(
    reassignments: Mapping[TopicPartition, Sequence[int] | None],
) -> Plan[dict[TopicPartition, AdminError | None]]:
    """Begin to reassign partitions; return the error of each partition (KIP-455).

    The value for a partition is its new broker ids; the first broker becomes the preferred leader.
    None cancels a reassignment. `list_partition_reassignments` shows progress.
    """
    from bridgehead.kafka_wire.messages.alter_partition_reassignments import (
        AlterPartitionReassignmentsRequest,
        ReassignablePartition,
        ReassignableTopic,
    )

    def request(left: Mapping[TopicPartition, Sequence[int] | None]) -> Request:
        def build(attempt: Attempt) -> AlterPartitionReassignmentsRequest:
            topics = [
                ReassignableTopic(
                    name,
                    [
                        ReassignablePartition(index, None if to is None else list(to))
                        for index, to in wanted.items()
                    ],
                )
                for name, wanted in _by_topic(left).items()
            ]
            return AlterPartitionReassignmentsRequest(attempt.timeout_ms, topics)

        return Request(ApiKey.ALTER_PARTITION_REASSIGNMENTS, build)

    def results(response: BrokerResponse) -> Iterator[tuple[TopicPartition, Try[None]]]:
        response.check(response.message.error_code, response.message.error_message)
        for topic in response.message.responses:
            for partition in topic.partitions:
                yield (
                    TopicPartition(topic.name, partition.partition_index),
                    response.done(partition),
                )

    return (yield from Batch(reassignments, request, results).errors())


def list_partition_reassignments(
    partitions: Collection[TopicPartition] | None = None,
) -> Plan[dict[TopicPartition, PartitionReassignment]]:
    """Return the reassignments of `partitions` that are in progress (KIP-455).

    If `partitions` is None, return the reassignments of all partitions.
    """
    from bridgehead.kafka_wire.messages.list_partition_reassignments import (
        ListPartitionReassignmentsRequest,
        ListPartitionReassignmentsTopics,
    )

    def build(attempt: Attempt) -> ListPartitionReassignmentsRequest:
        topics = None
        if partitions is not None:
            topics = [
                ListPartitionReassignmentsTopics(name, list(numbers))
                for name, numbers in _by_topic(partitions).items()
            ]
        return ListPartitionReassignmentsRequest(attempt.timeout_ms, topics)

    response = yield from one(Request(ApiKey.LIST_PARTITION_REASSIGNMENTS, build))
    response.check(response.message.error_code, response.message.error_message)
    return {
        TopicPartition(topic.name, partition.partition_index): PartitionReassignment(
            partition.replicas, partition.adding_replicas, partition.removing_replicas
        )
        for topic in response.message.topics
        for partition in topic.partitions
    }


def wait_for_reassignments(
    partitions: Collection[TopicPartition] | None = None, poll_ms: int = 200
) -> Plan[None]:
    """Wait until none of `partitions` is being reassigned; None means all partitions (KIP-4).

    The client asks the controller every `poll_ms` milliseconds. A reassignment can take longer than
    `default.api.timeout.ms`: use `with_timeout`.

    Raises:
        KafkaTimeoutError: some partitions are still being reassigned; the text names them.
        InvalidCallError: `poll_ms` is below 1.
    """
    if poll_ms < 1:
        raise InvalidCallError(f"poll_ms is {poll_ms}: give 1 or more.")
    while left := (yield from list_partition_reassignments(partitions)):
        try:
            yield Wait(poll_ms)
        except KafkaTimeoutError:
            named = [f"{name}-{number}" for name, number in sorted(left)]
            more = f" and {len(named) - _NAMED_MAX} more" if len(named) > _NAMED_MAX else ""
            text = f"{', '.join(named[:_NAMED_MAX])}{more} are still being reassigned: wait longer."
            raise KafkaTimeoutError(text, sent=True) from None


def _by_topic(partitions: Collection[TopicPartition]) -> dict[str, dict[int, Any]]:
    """Group partitions by topic. If they are the keys of a mapping, keep their values."""
    topics: dict[str, dict[int, Any]] = {}
    for partition in partitions:
        value = partitions[partition] if isinstance(partitions, Mapping) else None
        topics.setdefault(partition.topic, {})[partition.partition] = value
    return topics
