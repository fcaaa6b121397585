"""Fetch, key 1, versions 0 to 17; flexible from 12.

Version notes:
    1: The response adds `throttle_time_ms`.
    2: Same fields as 1.
    3: The request adds `max_bytes`.
    4: The request adds `isolation_level`. The response adds
       `responses.partitions.last_stable_offset`, `responses.partitions.aborted_transactions`.
    5: The request adds `topics.partitions.log_start_offset`. The response adds
       `responses.partitions.log_start_offset`.
    6: Same fields as 5.
    7: The request adds `session_id`, `session_epoch`, `forgotten_topics_data`. The response adds
       `error_code`, `session_id`.
    8: Same fields as 7.
    9: The request adds `topics.partitions.current_leader_epoch`.
    10: Same fields as 9.
    11: The request adds `rack_id`. The response adds
       `responses.partitions.preferred_read_replica`.
    12: First flexible version. The request adds `topics.partitions.last_fetched_epoch`,
       `cluster_id`. The response adds `responses.partitions.diverging_epoch`,
       `responses.partitions.current_leader`, `responses.partitions.snapshot_id`.
    13: The request adds `topics.topic_id`, `forgotten_topics_data.topic_id`; drops
       `topics.topic`, `forgotten_topics_data.topic`. The response adds `responses.topic_id`;
       drops `responses.topic`.
    14: Same fields as 13.
    15: The request adds `replica_state`; drops `replica_id`.
    16: The response adds `node_endpoints`.
    17: The request adds `topics.partitions.replica_directory_id`.
"""

from __future__ import annotations

from dataclasses import dataclass

from bridgehead.kafka_wire.schema import (
    INT8,
    INT16,
    INT32,
    INT64,
    RECORDS,
    STRING,
    UUID,
    Array,
    wire,
)


@dataclass(slots=True)
class FetchPartition:
    """An element of `topics.partitions` of the request."""

    partition: int = wire(INT32)
    current_leader_epoch: int = wire(INT32, versions="9+", default=-1)
    fetch_offset: int = wire(INT64)
    last_fetched_epoch: int = wire(INT32, versions="12+", default=-1)
    log_start_offset: int = wire(INT64, versions="5+", default=-1)
    partition_max_bytes: int = wire(INT32)
    replica_directory_id: bytes = wire(UUID, versions="17+", tag=0)


@dataclass(slots=True)
class FetchTopic:
    """An element of `topics` of the request."""

    topic_id: bytes = wire(UUID, versions="13+")
    topic: str = wire(STRING, versions="0-12")
    partitions: list[FetchPartition] = wire(Array(FetchPartition))


@dataclass(slots=True)
class ForgottenTopic:
    """An element of `forgotten_topics_data` of the request. Versions 7+."""

    topic_id: bytes = wire(UUID, versions="13+")
    topic: str = wire(STRING, versions="7-12")
    partitions: list[int] = wire(Array(INT32))


@dataclass(slots=True)
class ReplicaState:
    """The struct `replica_state` of the request. Versions 15+."""

    replica_id: int = wire(INT32, default=-1)
    replica_epoch: int = wire(INT64, default=-1)


@dataclass(slots=True)
class FetchRequest:
    """The request."""

    replica_id: int = wire(INT32, versions="0-14", default=-1)
    max_wait_ms: int = wire(INT32)
    min_bytes: int = wire(INT32)
    max_bytes: int = wire(INT32, versions="3+", default=2147483647)
    isolation_level: int = wire(INT8, versions="4+")
    session_id: int = wire(INT32, versions="7+")
    session_epoch: int = wire(INT32, versions="7+", default=-1)
    topics: list[FetchTopic] = wire(Array(FetchTopic))
    forgotten_topics_data: list[ForgottenTopic] = wire(Array(ForgottenTopic), versions="7+")
    rack_id: str = wire(STRING, versions="11+", default="")
    cluster_id: str | None = wire(STRING, versions="12+", nullable="12+", tag=0, default=None)
    replica_state: ReplicaState = wire(ReplicaState, versions="15+", tag=1)


@dataclass(slots=True)
class AbortedTransaction:
    """An element of `responses.partitions.aborted_transactions` of the response. Versions 4+."""

    producer_id: int = wire(INT64)
    first_offset: int = wire(INT64)


@dataclass(slots=True)
class EpochEndOffset:
    """The struct `responses.partitions.diverging_epoch` of the response. Versions 12+."""

    epoch: int = wire(INT32, default=-1)
    end_offset: int = wire(INT64, default=-1)


@dataclass(slots=True)
class LeaderIdAndEpoch:
    """The struct `responses.partitions.current_leader` of the response. Versions 12+."""

    leader_id: int = wire(INT32, default=-1)
    leader_epoch: int = wire(INT32, default=-1)


@dataclass(slots=True)
class SnapshotId:
    """The struct `responses.partitions.snapshot_id` of the response. Versions 12+."""

    end_offset: int = wire(INT64, default=-1)
    epoch: int = wire(INT32, default=-1)


@dataclass(slots=True)
class PartitionData:
    """An element of `responses.partitions` of the response."""

    partition_index: int = wire(INT32)
    error_code: int = wire(INT16)
    high_watermark: int = wire(INT64)
    last_stable_offset: int = wire(INT64, versions="4+", default=-1)
    log_start_offset: int = wire(INT64, versions="5+", default=-1)
    aborted_transactions: list[AbortedTransaction] | None = wire(
        Array(AbortedTransaction), versions="4+", nullable="4+"
    )
    preferred_read_replica: int = wire(INT32, versions="11+", default=-1)
    records: bytes | None = wire(RECORDS, nullable="0+")
    diverging_epoch: EpochEndOffset = wire(EpochEndOffset, versions="12+", tag=0)
    current_leader: LeaderIdAndEpoch = wire(LeaderIdAndEpoch, versions="12+", tag=1)
    snapshot_id: SnapshotId = wire(SnapshotId, versions="12+", tag=2)


@dataclass(slots=True)
class FetchableTopicResponse:
    """An element of `responses` of the response."""

    topic_id: bytes = wire(UUID, versions="13+")
    topic: str = wire(STRING, versions="0-12")
    partitions: list[PartitionData] = wire(Array(PartitionData))


@dataclass(slots=True)
class NodeEndpoint:
    """An element of `node_endpoints` of the response. Versions 16+."""

    node_id: int = wire(INT32)
    host: str = wire(STRING)
    port: int = wire(INT32)
    rack: str | None = wire(STRING, nullable="16+", default=None)


@dataclass(slots=True)
class FetchResponse:
    """The response."""

    throttle_time_ms: int = wire(INT32, versions="1+")
    error_code: int = wire(INT16, versions="7+")
    session_id: int = wire(INT32, versions="7+")
    responses: list[FetchableTopicResponse] = wire(Array(FetchableTopicResponse))
    node_endpoints: list[NodeEndpoint] = wire(Array(NodeEndpoint), versions="16+", tag=0)
