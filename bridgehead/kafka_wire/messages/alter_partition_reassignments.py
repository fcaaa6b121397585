"""AlterPartitionReassignments, key 45, versions 0 to 0; flexible from 0."""

from __future__ import annotations

from dataclasses import dataclass

from bridgehead.kafka_wire.schema import INT16, INT32, STRING, Array, wire


@dataclass(slots=True)
class ReassignablePartition:
    """An element of `topics.partitions` of the request."""

    partition_index: int = wire(INT32)
    replicas: list[int] | None = wire(Array(INT32), nullable="0+", default=None)


@dataclass(slots=True)
class ReassignableTopic:
    """An element of `topics` of the request."""

    name: str = wire(STRING)
    partitions: list[ReassignablePartition] = wire(Array(ReassignablePartition))


@dataclass(slots=True)
class AlterPartitionReassignmentsRequest:
    """The request."""

    timeout_ms: int = wire(INT32, default=60000)
    topics: list[ReassignableTopic] = wire(Array(ReassignableTopic))


@dataclass(slots=True)
class ReassignablePartitionResponse:
    """An element of `responses.partitions` of the response."""

    partition_index: int = wire(INT32)
    error_code: int = wire(INT16)
    error_message: str | None = wire(STRING, nullable="0+")


@dataclass(slots=True)
class ReassignableTopicResponse:
    """An element of `responses` of the response."""

    name: str = wire(STRING)
    partitions: list[ReassignablePartitionResponse] = wire(Array(ReassignablePartitionResponse))


@dataclass(slots=True)
class AlterPartitionReassignmentsResponse:
    """The response."""

    throttle_time_ms: int = wire(INT32)
    error_code: int = wire(INT16)
    error_message: str | None = wire(STRING, nullable="0+")
    responses: list[ReassignableTopicResponse] = wire(Array(ReassignableTopicResponse))
