"""ElectLeaders, key 43, versions 0 to 2; flexible from 2.

Version notes:
    1: The request adds `election_type`. The response adds `error_code`.
    2: First flexible version.
"""

from __future__ import annotations

from dataclasses import dataclass

from bridgehead.kafka_wire.schema import INT8, INT16, INT32, STRING, Array, wire


@dataclass(slots=True)
class TopicPartitions:
    """An element of `topic_partitions` of the request."""

    topic: str = wire(STRING)
    partitions: list[int] = wire(Array(INT32))


@dataclass(slots=True)
class ElectLeadersRequest:
    """The request."""

    election_type: int = wire(INT8, versions="1+")
    topic_partitions: list[TopicPartitions] | None = wire(Array(TopicPartitions), nullable="0+")
    timeout_ms: int = wire(INT32, default=60000)


@dataclass(slots=True)
class PartitionResult:
    """An element of `replica_election_results.partition_result` of the response."""

    partition_id: int = wire(INT32)
    error_code: int = wire(INT16)
    error_message: str | None = wire(STRING, nullable="0+")


@dataclass(slots=True)
class ReplicaElectionResult:
    """An element of `replica_election_results` of the response."""

    topic: str = wire(STRING)
    partition_result: list[PartitionResult] = wire(Array(PartitionResult))


@dataclass(slots=True)
class ElectLeadersResponse:
    """The response."""

    throttle_time_ms: int = wire(INT32)
    error_code: int = wire(INT16, versions="1+")
    replica_election_results: list[ReplicaElectionResult] = wire(Array(ReplicaElectionResult))
