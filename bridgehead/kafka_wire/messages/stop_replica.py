"""StopReplica, key 5, versions 0 to 4; flexible from 2.

Version notes:
    1: The request adds `broker_epoch`, `topics`; drops `ungrouped_partitions`.
    2: First flexible version.
    3: The request adds `topic_states`; drops `delete_partitions`, `topics`.
    4: The request adds `is_kraft_controller`.
"""

from __future__ import annotations

from dataclasses import dataclass

from bridgehead.kafka_wire.schema import BOOL, INT16, INT32, INT64, STRING, Array, wire


@dataclass(slots=True)
class StopReplicaPartitionState:
    """An element of `topic_states.partition_states` of the request. Versions 3+."""

    partition_index: int = wire(INT32)
    leader_epoch: int = wire(INT32, default=-1)
    delete_partition: bool = wire(BOOL)


@dataclass(slots=True)
class StopReplicaTopicState:
    """An element of `topic_states` of the request. Versions 3+."""

    topic_name: str = wire(STRING)
    partition_states: list[StopReplicaPartitionState] = wire(Array(StopReplicaPartitionState))


@dataclass(slots=True)
class StopReplicaTopicV1:
    """An element of `topics` of the request. Versions 1-2."""

    name: str = wire(STRING)
    partition_indexes: list[int] = wire(Array(INT32))


@dataclass(slots=True)
class StopReplicaPartitionV0:
    """An element of `ungrouped_partitions` of the request. Versions 0."""

    topic_name: str = wire(STRING)
    partition_index: int = wire(INT32)


@dataclass(slots=True)
class StopReplicaRequest:
    """The request."""

    controller_id: int = wire(INT32)
    is_kraft_controller: bool = wire(BOOL, versions="4+", json="isKRaftController")
    controller_epoch: int = wire(INT32)
    broker_epoch: int = wire(INT64, versions="1+", default=-1)
    topic_states: list[StopReplicaTopicState] = wire(Array(StopReplicaTopicState), versions="3+")
    delete_partitions: bool = wire(BOOL, versions="0-2")
    topics: list[StopReplicaTopicV1] = wire(Array(StopReplicaTopicV1), versions="1-2")
    ungrouped_partitions: list[StopReplicaPartitionV0] = wire(
        Array(StopReplicaPartitionV0), versions="0"
    )


@dataclass(slots=True)
class StopReplicaPartitionError:
    """An element of `partition_errors` of the response."""

    topic_name: str = wire(STRING)
    partition_index: int = wire(INT32)
    error_code: int = wire(INT16)


@dataclass(slots=True)
class StopReplicaResponse:
    """The response."""

    error_code: int = wire(INT16)
    partition_errors: list[StopReplicaPartitionError] = wire(Array(StopReplicaPartitionError))
