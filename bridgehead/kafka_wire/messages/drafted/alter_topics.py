"""AlterTopics of KIP-4, key 10001, version 0; not flexible.

The KIP assigns no key; ours is far above Kafka's. -1 and an empty assignment mean that the
client does not set the value.
"""

from __future__ import annotations

from dataclasses import dataclass

from bridgehead.kafka_wire.schema import INT16, INT32, STRING, Array, wire


@dataclass(slots=True)
class PartitionReplicas:
    """An element of `topics.replica_assignment` of the request."""

    partition: int = wire(INT32)
    replicas: list[int] = wire(Array(INT32))


@dataclass(slots=True)
class AlterTopic:
    """An element of `topics` of the request."""

    topic: str = wire(STRING)
    partitions: int = wire(INT32, default=-1)
    replication_factor: int = wire(INT32, default=-1)
    replica_assignment: list[PartitionReplicas] = wire(Array(PartitionReplicas))


@dataclass(slots=True)
class AlterTopicsRequest:
    """The request."""

    topics: list[AlterTopic] = wire(Array(AlterTopic))


@dataclass(slots=True)
class AlterTopicResult:
    """An element of `topics` of the response."""

    topic: str = wire(STRING)
    error_code: int = wire(INT16)


@dataclass(slots=True)
class AlterTopicsResponse:
    """The response."""

    topics: list[AlterTopicResult] = wire(Array(AlterTopicResult))
