"""UpdateMetadata, key 6, versions 0 to 8; flexible from 6.

Version notes:
    1: The request adds `live_brokers.endpoints`; drops `live_brokers.v0_host`,
       `live_brokers.v0_port`.
    2: The request adds `live_brokers.rack`.
    3: The request adds `live_brokers.endpoints.listener`.
    4: The request adds `ungrouped_partition_states.offline_replicas`.
    5: The request adds `broker_epoch`, `topic_states`; drops `ungrouped_partition_states`.
    6: First flexible version.
    7: The request adds `topic_states.topic_id`.
    8: The request adds `is_kraft_controller`, `type`.
"""

from __future__ import annotations

from dataclasses import dataclass

from bridgehead.kafka_wire.schema import BOOL, INT8, INT16, INT32, INT64, STRING, UUID, Array, wire


@dataclass(slots=True)
class UpdateMetadataPartitionState:
    """An element of `partition_states`; up to version 4, of `ungrouped_partition_states`."""

    topic_name: str = wire(STRING, versions="0-4")
    partition_index: int = wire(INT32)
    controller_epoch: int = wire(INT32)
    leader: int = wire(INT32)
    leader_epoch: int = wire(INT32)
    isr: list[int] = wire(Array(INT32))
    zk_version: int = wire(INT32)
    replicas: list[int] = wire(Array(INT32))
    offline_replicas: list[int] = wire(Array(INT32), versions="4+")


@dataclass(slots=True)
class UpdateMetadataTopicState:
    """An element of `topic_states` of the request. Versions 5+."""

    topic_name: str = wire(STRING)
    topic_id: bytes = wire(UUID, versions="7+")
    partition_states: list[UpdateMetadataPartitionState] = wire(Array(UpdateMetadataPartitionState))


@dataclass(slots=True)
class UpdateMetadataEndpoint:
    """An element of `live_brokers.endpoints` of the request. Versions 1+."""

    port: int = wire(INT32)
    host: str = wire(STRING)
    listener: str = wire(STRING, versions="3+")
    security_protocol: int = wire(INT16)


@dataclass(slots=True)
class UpdateMetadataBroker:
    """An element of `live_brokers` of the request."""

    id: int = wire(INT32)
    endpoints: list[UpdateMetadataEndpoint] = wire(Array(UpdateMetadataEndpoint), versions="1+")
    rack: str | None = wire(STRING, versions="2+", nullable="2+")
    v0_host: str = wire(STRING, versions="0")
    v0_port: int = wire(INT32, versions="0")


@dataclass(slots=True)
class UpdateMetadataRequest:
    """The request."""

    controller_id: int = wire(INT32)
    is_kraft_controller: bool = wire(BOOL, versions="8+", json="isKRaftController")
    type: int = wire(INT8, versions="8+", tag=0)
    controller_epoch: int = wire(INT32)
    broker_epoch: int = wire(INT64, versions="5+", default=-1)
    topic_states: list[UpdateMetadataTopicState] = wire(
        Array(UpdateMetadataTopicState), versions="5+"
    )
    ungrouped_partition_states: list[UpdateMetadataPartitionState] = wire(
        Array(UpdateMetadataPartitionState), versions="0-4"
    )
    live_brokers: list[UpdateMetadataBroker] = wire(Array(UpdateMetadataBroker))


@dataclass(slots=True)
class UpdateMetadataResponse:
    """The response."""

    error_code: int = wire(INT16)
