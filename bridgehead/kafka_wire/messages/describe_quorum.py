"""DescribeQuorum, key 55, versions 0 to 2; flexible from 0.

Version notes:
    1: The response adds `topics.partitions.current_voters.last_fetch_timestamp`,
       `topics.partitions.current_voters.last_caught_up_timestamp`; the same for `observers`.
    2: The response adds `error_message`, `topics.partitions.error_message`, `nodes`,
       `topics.partitions.current_voters.replica_directory_id`; the same for `observers`.
"""

from __future__ import annotations

from dataclasses import dataclass

from bridgehead.kafka_wire.schema import INT16, INT32, INT64, STRING, UINT16, UUID, Array, wire


@dataclass(slots=True)
class QuorumPartition:
    """An element of `topics.partitions` of the request."""

    partition_index: int = wire(INT32)


@dataclass(slots=True)
class QuorumTopic:
    """An element of `topics` of the request."""

    topic_name: str = wire(STRING)
    partitions: list[QuorumPartition] = wire(Array(QuorumPartition))


@dataclass(slots=True)
class DescribeQuorumRequest:
    """The request."""

    topics: list[QuorumTopic] = wire(Array(QuorumTopic))


@dataclass(slots=True)
class ReplicaState:
    """An element of `topics.partitions.current_voters` and of `observers` of the response."""

    replica_id: int = wire(INT32)
    replica_directory_id: bytes = wire(UUID, versions="2+")
    log_end_offset: int = wire(INT64)
    last_fetch_timestamp: int = wire(INT64, versions="1+", default=-1)
    last_caught_up_timestamp: int = wire(INT64, versions="1+", default=-1)


@dataclass(slots=True)
class PartitionData:
    """An element of `topics.partitions` of the response."""

    partition_index: int = wire(INT32)
    error_code: int = wire(INT16)
    error_message: str | None = wire(STRING, versions="2+", nullable="2+")
    leader_id: int = wire(INT32)
    leader_epoch: int = wire(INT32)
    high_watermark: int = wire(INT64)
    current_voters: list[ReplicaState] = wire(Array(ReplicaState))
    observers: list[ReplicaState] = wire(Array(ReplicaState))


@dataclass(slots=True)
class TopicData:
    """An element of `topics` of the response."""

    topic_name: str = wire(STRING)
    partitions: list[PartitionData] = wire(Array(PartitionData))


@dataclass(slots=True)
class Listener:
    """An element of `nodes.listeners` of the response. Versions 2+."""

    name: str = wire(STRING)
    host: str = wire(STRING)
    port: int = wire(UINT16)


@dataclass(slots=True)
class Node:
    """An element of `nodes` of the response. Versions 2+."""

    node_id: int = wire(INT32)
    listeners: list[Listener] = wire(Array(Listener))


@dataclass(slots=True)
class DescribeQuorumResponse:
    """The response."""

    error_code: int = wire(INT16)
    error_message: str | None = wire(STRING, versions="2+", nullable="2+")
    topics: list[TopicData] = wire(Array(TopicData))
    nodes: list[Node] = wire(Array(Node), versions="2+")
