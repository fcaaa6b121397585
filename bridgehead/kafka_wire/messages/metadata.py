"""Metadata, key 3, versions 0 to 12; flexible from 9.

Version notes:
    1: In the request `topics` may be null. The response adds `brokers.rack`, `controller_id`,
       `topics.is_internal`.
    2: The response adds `cluster_id`.
    3: The response adds `throttle_time_ms`.
    4: The request adds `allow_auto_topic_creation`.
    5: The response adds `topics.partitions.offline_replicas`.
    6: Same fields as 5.
    7: The response adds `topics.partitions.leader_epoch`.
    8: The request adds `include_cluster_authorized_operations`,
       `include_topic_authorized_operations`. The response adds
       `topics.topic_authorized_operations`, `cluster_authorized_operations`.
    9: First flexible version.
    10: The request adds `topics.topic_id`; `topics.name` may be null. The response adds
       `topics.topic_id`.
    11: The request drops `include_cluster_authorized_operations`. The response drops
       `cluster_authorized_operations`.
    12: In the response `topics.name` may be null.
"""

from __future__ import annotations

from dataclasses import dataclass

from bridgehead.kafka_wire.schema import BOOL, INT16, INT32, STRING, UUID, Array, wire


@dataclass(slots=True)
class MetadataRequestTopic:
    """An element of `topics` of the request."""

    topic_id: bytes = wire(UUID, versions="10+")
    name: str | None = wire(STRING, nullable="10+")


@dataclass(slots=True)
class MetadataRequest:
    """The request."""

    topics: list[MetadataRequestTopic] | None = wire(Array(MetadataRequestTopic), nullable="1+")
    allow_auto_topic_creation: bool = wire(BOOL, versions="4+", default=True)
    include_cluster_authorized_operations: bool = wire(BOOL, versions="8-10")
    include_topic_authorized_operations: bool = wire(BOOL, versions="8+")


@dataclass(slots=True)
class MetadataResponseBroker:
    """An element of `brokers` of the response."""

    node_id: int = wire(INT32)
    host: str = wire(STRING)
    port: int = wire(INT32)
    rack: str | None = wire(STRING, versions="1+", nullable="1+", default=None)


@dataclass(slots=True)
class MetadataResponsePartition:
    """An element of `topics.partitions` of the response."""

    error_code: int = wire(INT16)
    partition_index: int = wire(INT32)
    leader_id: int = wire(INT32)
    leader_epoch: int = wire(INT32, versions="7+", default=-1)
    replica_nodes: list[int] = wire(Array(INT32))
    isr_nodes: list[int] = wire(Array(INT32))
    offline_replicas: list[int] = wire(Array(INT32), versions="5+")


@dataclass(slots=True)
class MetadataResponseTopic:
    """An element of `topics` of the response."""

    error_code: int = wire(INT16)
    name: str | None = wire(STRING, nullable="12+")
    topic_id: bytes = wire(UUID, versions="10+")
    is_internal: bool = wire(BOOL, versions="1+")
    partitions: list[MetadataResponsePartition] = wire(Array(MetadataResponsePartition))
    topic_authorized_operations: int = wire(INT32, versions="8+", default=-2147483648)


@dataclass(slots=True)
class MetadataResponse:
    """The response."""

    throttle_time_ms: int = wire(INT32, versions="3+")
    brokers: list[MetadataResponseBroker] = wire(Array(MetadataResponseBroker))
    cluster_id: str | None = wire(STRING, versions="2+", nullable="2+", default=None)
    controller_id: int = wire(INT32, versions="1+", default=-1)
    topics: list[MetadataResponseTopic] = wire(Array(MetadataResponseTopic))
    cluster_authorized_operations: int = wire(INT32, versions="8-10", default=-2147483648)
