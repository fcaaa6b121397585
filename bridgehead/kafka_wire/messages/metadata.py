"""Metadata, key 3, versions 0 to 12; flexible from 9."""

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
