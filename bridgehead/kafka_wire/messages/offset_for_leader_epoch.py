"""OffsetForLeaderEpoch, key 23, versions 0 to 4; flexible from 4.

Version notes:
    1: The response adds `topics.partitions.leader_epoch`.
    2: The request adds `topics.partitions.current_leader_epoch`. The response adds
       `throttle_time_ms`.
    3: The request adds `replica_id`.
    4: First flexible version.
"""

from __future__ import annotations

from dataclasses import dataclass

from bridgehead.kafka_wire.schema import INT16, INT32, INT64, STRING, Array, wire


@dataclass(slots=True)
class OffsetForLeaderPartition:
    """An element of `topics.partitions` of the request."""

    partition: int = wire(INT32)
    current_leader_epoch: int = wire(INT32, versions="2+", default=-1)
    leader_epoch: int = wire(INT32)


@dataclass(slots=True)
class OffsetForLeaderTopic:
    """An element of `topics` of the request."""

    topic: str = wire(STRING)
    partitions: list[OffsetForLeaderPartition] = wire(Array(OffsetForLeaderPartition))


@dataclass(slots=True)
class OffsetForLeaderEpochRequest:
    """The request."""

    replica_id: int = wire(INT32, versions="3+", default=-2)
    topics: list[OffsetForLeaderTopic] = wire(Array(OffsetForLeaderTopic))


@dataclass(slots=True)
class EpochEndOffset:
    """An element of `topics.partitions` of the response."""

    error_code: int = wire(INT16)
    partition: int = wire(INT32)
    leader_epoch: int = wire(INT32, versions="1+", default=-1)
    end_offset: int = wire(INT64, default=-1)


@dataclass(slots=True)
class OffsetForLeaderTopicResult:
    """An element of `topics` of the response."""

    topic: str = wire(STRING)
    partitions: list[EpochEndOffset] = wire(Array(EpochEndOffset))


@dataclass(slots=True)
class OffsetForLeaderEpochResponse:
    """The response."""

    throttle_time_ms: int = wire(INT32, versions="2+")
    topics: list[OffsetForLeaderTopicResult] = wire(Array(OffsetForLeaderTopicResult))
