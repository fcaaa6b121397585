"""LeaderAndIsr, key 4, versions 0 to 7; flexible from 4.

Version notes:
    1: The request adds `ungrouped_partition_states.is_new`.
    2: The request adds `broker_epoch`, `topic_states`; drops `ungrouped_partition_states`.
    3: The request adds `topic_states.partition_states.adding_replicas`,
       `topic_states.partition_states.removing_replicas`.
    4: First flexible version.
    5: The request adds `type`, `topic_states.topic_id`. The response adds `topics`; drops
       `partition_errors`.
    6: The request adds `topic_states.partition_states.leader_recovery_state`.
    7: The request adds `is_kraft_controller`.
"""

from __future__ import annotations

from dataclasses import dataclass

from bridgehead.kafka_wire.schema import BOOL, INT8, INT16, INT32, INT64, STRING, UUID, Array, wire


@dataclass(slots=True)
class LeaderAndIsrPartitionState:
    """An element of `partition_states`; up to version 1, of `ungrouped_partition_states`."""

    topic_name: str = wire(STRING, versions="0-1")
    partition_index: int = wire(INT32)
    controller_epoch: int = wire(INT32)
    leader: int = wire(INT32)
    leader_epoch: int = wire(INT32)
    isr: list[int] = wire(Array(INT32))
    partition_epoch: int = wire(INT32)
    replicas: list[int] = wire(Array(INT32))
    adding_replicas: list[int] = wire(Array(INT32), versions="3+")
    removing_replicas: list[int] = wire(Array(INT32), versions="3+")
    is_new: bool = wire(BOOL, versions="1+")
    leader_recovery_state: int = wire(INT8, versions="6+")


@dataclass(slots=True)
class LeaderAndIsrTopicState:
    """An element of `topic_states` of the request. Versions 2+."""

    topic_name: str = wire(STRING)
    topic_id: bytes = wire(UUID, versions="5+")
    partition_states: list[LeaderAndIsrPartitionState] = wire(Array(LeaderAndIsrPartitionState))


@dataclass(slots=True)
class LeaderAndIsrLiveLeader:
    """An element of `live_leaders` of the request."""

    broker_id: int = wire(INT32)
    host_name: str = wire(STRING)
    port: int = wire(INT32)


@dataclass(slots=True)
class LeaderAndIsrRequest:
    """The request."""

    controller_id: int = wire(INT32)
    is_kraft_controller: bool = wire(BOOL, versions="7+", json="isKRaftController")
    controller_epoch: int = wire(INT32)
    broker_epoch: int = wire(INT64, versions="2+", default=-1)
    type: int = wire(INT8, versions="5+")
    topic_states: list[LeaderAndIsrTopicState] = wire(Array(LeaderAndIsrTopicState), versions="2+")
    ungrouped_partition_states: list[LeaderAndIsrPartitionState] = wire(
        Array(LeaderAndIsrPartitionState), versions="0-1"
    )
    live_leaders: list[LeaderAndIsrLiveLeader] = wire(Array(LeaderAndIsrLiveLeader))


@dataclass(slots=True)
class LeaderAndIsrPartitionError:
    """An element of `topics.partition_errors`; up to version 4, of `partition_errors`."""

    topic_name: str = wire(STRING, versions="0-4")
    partition_index: int = wire(INT32)
    error_code: int = wire(INT16)


@dataclass(slots=True)
class LeaderAndIsrTopicError:
    """An element of `topics` of the response. Versions 5+."""

    topic_id: bytes = wire(UUID)
    partition_errors: list[LeaderAndIsrPartitionError] = wire(Array(LeaderAndIsrPartitionError))


@dataclass(slots=True)
class LeaderAndIsrResponse:
    """The response."""

    error_code: int = wire(INT16)
    topics: list[LeaderAndIsrTopicError] = wire(Array(LeaderAndIsrTopicError), versions="5+")
    partition_errors: list[LeaderAndIsrPartitionError] = wire(
        Array(LeaderAndIsrPartitionError), versions="0-4"
    )
