"""AlterPartition, key 56, versions 0 to 3; flexible from 0.

Version notes:
    1: The request adds `topics.partitions.leader_recovery_state`. The response adds
       `topics.partitions.leader_recovery_state`.
    2: The request adds `topics.topic_id`; drops `topics.topic_name`. The response adds
       `topics.topic_id`; drops `topics.topic_name`.
    3: The request adds `topics.partitions.new_isr_with_epochs`; drops
       `topics.partitions.new_isr`.
"""

from __future__ import annotations

from dataclasses import dataclass

from bridgehead.kafka_wire.schema import INT8, INT16, INT32, INT64, STRING, UUID, Array, wire


@dataclass(slots=True)
class BrokerState:
    """An element of `topics.partitions.new_isr_with_epochs` of the request. Versions 3+."""

    broker_id: int = wire(INT32)
    broker_epoch: int = wire(INT64, default=-1)


@dataclass(slots=True)
class PartitionData:
    """An element of `topics.partitions` of the request."""

    partition_index: int = wire(INT32)
    leader_epoch: int = wire(INT32)
    new_isr_with_epochs: list[BrokerState] = wire(Array(BrokerState), versions="3+")
    new_isr: list[int] = wire(Array(INT32), versions="0-2")
    leader_recovery_state: int = wire(INT8, versions="1+")
    partition_epoch: int = wire(INT32)


@dataclass(slots=True)
class TopicData:
    """An element of `topics` of the request."""

    topic_id: bytes = wire(UUID, versions="2+")
    topic_name: str = wire(STRING, versions="0-1")
    partitions: list[PartitionData] = wire(Array(PartitionData))


@dataclass(slots=True)
class AlterPartitionRequest:
    """The request."""

    broker_id: int = wire(INT32)
    broker_epoch: int = wire(INT64, default=-1)
    topics: list[TopicData] = wire(Array(TopicData))


@dataclass(slots=True)
class AlterPartitionTopicDataPartitionData:
    """An element of `topics.partitions` of the response."""

    partition_index: int = wire(INT32)
    error_code: int = wire(INT16)
    leader_id: int = wire(INT32)
    leader_epoch: int = wire(INT32)
    isr: list[int] = wire(Array(INT32))
    leader_recovery_state: int = wire(INT8, versions="1+")
    partition_epoch: int = wire(INT32)


@dataclass(slots=True)
class AlterPartitionTopicData:
    """An element of `topics` of the response."""

    topic_id: bytes = wire(UUID, versions="2+")
    topic_name: str = wire(STRING, versions="0-1")
    partitions: list[AlterPartitionTopicDataPartitionData] = wire(
        Array(AlterPartitionTopicDataPartitionData)
    )


@dataclass(slots=True)
class AlterPartitionResponse:
    """The response."""

    throttle_time_ms: int = wire(INT32)
    error_code: int = wire(INT16)
    topics: list[AlterPartitionTopicData] = wire(Array(AlterPartitionTopicData))
