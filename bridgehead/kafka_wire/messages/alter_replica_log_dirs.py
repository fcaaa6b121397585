"""AlterReplicaLogDirs, key 34, versions 0 to 2; flexible from 2.

Version notes:
    1: Same fields as 0.
    2: First flexible version.
"""

from __future__ import annotations

from dataclasses import dataclass

from bridgehead.kafka_wire.schema import INT16, INT32, STRING, Array, wire


@dataclass(slots=True)
class AlterReplicaLogDirTopic:
    """An element of `dirs.topics` of the request."""

    name: str = wire(STRING)
    partitions: list[int] = wire(Array(INT32))


@dataclass(slots=True)
class AlterReplicaLogDir:
    """An element of `dirs` of the request."""

    path: str = wire(STRING)
    topics: list[AlterReplicaLogDirTopic] = wire(Array(AlterReplicaLogDirTopic))


@dataclass(slots=True)
class AlterReplicaLogDirsRequest:
    """The request."""

    dirs: list[AlterReplicaLogDir] = wire(Array(AlterReplicaLogDir))


@dataclass(slots=True)
class AlterReplicaLogDirPartitionResult:
    """An element of `results.partitions` of the response."""

    partition_index: int = wire(INT32)
    error_code: int = wire(INT16)


@dataclass(slots=True)
class AlterReplicaLogDirTopicResult:
    """An element of `results` of the response."""

    topic_name: str = wire(STRING)
    partitions: list[AlterReplicaLogDirPartitionResult] = wire(
        Array(AlterReplicaLogDirPartitionResult)
    )


@dataclass(slots=True)
class AlterReplicaLogDirsResponse:
    """The response."""

    throttle_time_ms: int = wire(INT32)
    results: list[AlterReplicaLogDirTopicResult] = wire(Array(AlterReplicaLogDirTopicResult))
