"""TxnOffsetCommit, key 28, versions 0 to 4; flexible from 3.

Version notes:
    1: Same fields as 0.
    2: The request adds `topics.partitions.committed_leader_epoch`.
    3: First flexible version. The request adds `generation_id`, `member_id`, `group_instance_id`.
    4: Same fields as 3.
"""

from __future__ import annotations

from dataclasses import dataclass

from bridgehead.kafka_wire.schema import INT16, INT32, INT64, STRING, Array, wire


@dataclass(slots=True)
class TxnOffsetCommitRequestPartition:
    """An element of `topics.partitions` of the request."""

    partition_index: int = wire(INT32)
    committed_offset: int = wire(INT64)
    committed_leader_epoch: int = wire(INT32, versions="2+", default=-1)
    committed_metadata: str | None = wire(STRING, nullable="0+")


@dataclass(slots=True)
class TxnOffsetCommitRequestTopic:
    """An element of `topics` of the request."""

    name: str = wire(STRING)
    partitions: list[TxnOffsetCommitRequestPartition] = wire(Array(TxnOffsetCommitRequestPartition))


@dataclass(slots=True)
class TxnOffsetCommitRequest:
    """The request."""

    transactional_id: str = wire(STRING)
    group_id: str = wire(STRING)
    producer_id: int = wire(INT64)
    producer_epoch: int = wire(INT16)
    generation_id: int = wire(INT32, versions="3+", default=-1)
    member_id: str = wire(STRING, versions="3+", default="")
    group_instance_id: str | None = wire(STRING, versions="3+", nullable="3+", default=None)
    topics: list[TxnOffsetCommitRequestTopic] = wire(Array(TxnOffsetCommitRequestTopic))


@dataclass(slots=True)
class TxnOffsetCommitResponsePartition:
    """An element of `topics.partitions` of the response."""

    partition_index: int = wire(INT32)
    error_code: int = wire(INT16)


@dataclass(slots=True)
class TxnOffsetCommitResponseTopic:
    """An element of `topics` of the response."""

    name: str = wire(STRING)
    partitions: list[TxnOffsetCommitResponsePartition] = wire(
        Array(TxnOffsetCommitResponsePartition)
    )


@dataclass(slots=True)
class TxnOffsetCommitResponse:
    """The response."""

    throttle_time_ms: int = wire(INT32)
    topics: list[TxnOffsetCommitResponseTopic] = wire(Array(TxnOffsetCommitResponseTopic))
