"""ListPartitionReassignments, key 46, versions 0 to 0; flexible from 0."""

from __future__ import annotations

from dataclasses import dataclass

from bridgehead.kafka_wire.schema import INT16, INT32, STRING, Array, wire


@dataclass(slots=True)
class ListPartitionReassignmentsTopics:
    """An element of `topics` of the request."""

    name: str = wire(STRING)
    partition_indexes: list[int] = wire(Array(INT32))


@dataclass(slots=True)
class ListPartitionReassignmentsRequest:
    """The request."""

    timeout_ms: int = wire(INT32, default=60000)
    topics: list[ListPartitionReassignmentsTopics] | None = wire(
        Array(ListPartitionReassignmentsTopics), nullable="0+", default=None
    )


@dataclass(slots=True)
class OngoingPartitionReassignment:
    """An element of `topics.partitions` of the response."""

    partition_index: int = wire(INT32)
    replicas: list[int] = wire(Array(INT32))
    adding_replicas: list[int] = wire(Array(INT32))
    removing_replicas: list[int] = wire(Array(INT32))


@dataclass(slots=True)
class OngoingTopicReassignment:
    """An element of `topics` of the response."""

    name: str = wire(STRING)
    partitions: list[OngoingPartitionReassignment] = wire(Array(OngoingPartitionReassignment))


@dataclass(slots=True)
class ListPartitionReassignmentsResponse:
    """The response."""

    throttle_time_ms: int = wire(INT32)
    error_code: int = wire(INT16)
    error_message: str | None = wire(STRING, nullable="0+")
    topics: list[OngoingTopicReassignment] = wire(Array(OngoingTopicReassignment))
