"""OffsetCommit, key 8, versions 0 to 9; flexible from 8.

Version notes:
    1: The request adds `generation_id_or_member_epoch`, `member_id`,
       `topics.partitions.commit_timestamp`.
    2: The request adds `retention_time_ms`; drops `topics.partitions.commit_timestamp`.
    3: The response adds `throttle_time_ms`.
    4: Same fields as 3.
    5: The request drops `retention_time_ms`.
    6: The request adds `topics.partitions.committed_leader_epoch`.
    7: The request adds `group_instance_id`.
    8: First flexible version.
    9: Same fields as 8.
"""

from __future__ import annotations

from dataclasses import dataclass

from bridgehead.kafka_wire.schema import INT16, INT32, INT64, STRING, Array, wire


@dataclass(slots=True)
class OffsetCommitRequestPartition:
    """An element of `topics.partitions` of the request."""

    partition_index: int = wire(INT32)
    committed_offset: int = wire(INT64)
    committed_leader_epoch: int = wire(INT32, versions="6+", default=-1)
    commit_timestamp: int = wire(INT64, versions="1", default=-1)
    committed_metadata: str | None = wire(STRING, nullable="0+")


@dataclass(slots=True)
class OffsetCommitRequestTopic:
    """An element of `topics` of the request."""

    name: str = wire(STRING)
    partitions: list[OffsetCommitRequestPartition] = wire(Array(OffsetCommitRequestPartition))


@dataclass(slots=True)
class OffsetCommitRequest:
    """The request."""

    group_id: str = wire(STRING)
    generation_id_or_member_epoch: int = wire(INT32, versions="1+", default=-1)
    member_id: str = wire(STRING, versions="1+")
    group_instance_id: str | None = wire(STRING, versions="7+", nullable="7+", default=None)
    retention_time_ms: int = wire(INT64, versions="2-4", default=-1)
    topics: list[OffsetCommitRequestTopic] = wire(Array(OffsetCommitRequestTopic))


@dataclass(slots=True)
class OffsetCommitResponsePartition:
    """An element of `topics.partitions` of the response."""

    partition_index: int = wire(INT32)
    error_code: int = wire(INT16)


@dataclass(slots=True)
class OffsetCommitResponseTopic:
    """An element of `topics` of the response."""

    name: str = wire(STRING)
    partitions: list[OffsetCommitResponsePartition] = wire(Array(OffsetCommitResponsePartition))


@dataclass(slots=True)
class OffsetCommitResponse:
    """The response."""

    throttle_time_ms: int = wire(INT32, versions="3+")
    topics: list[OffsetCommitResponseTopic] = wire(Array(OffsetCommitResponseTopic))
