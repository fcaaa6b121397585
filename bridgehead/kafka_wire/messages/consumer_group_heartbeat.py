"""ConsumerGroupHeartbeat, key 68, versions 0 to 0; flexible from 0."""

from __future__ import annotations

from dataclasses import dataclass

from bridgehead.kafka_wire.schema import INT16, INT32, STRING, UUID, Array, wire


@dataclass(slots=True)
class TopicPartitions:
    """An element of `topic_partitions` of the request."""

    topic_id: bytes = wire(UUID)
    partitions: list[int] = wire(Array(INT32))


@dataclass(slots=True)
class ConsumerGroupHeartbeatRequest:
    """The request."""

    group_id: str = wire(STRING)
    member_id: str = wire(STRING)
    member_epoch: int = wire(INT32)
    instance_id: str | None = wire(STRING, nullable="0+", default=None)
    rack_id: str | None = wire(STRING, nullable="0+", default=None)
    rebalance_timeout_ms: int = wire(INT32, default=-1)
    subscribed_topic_names: list[str] | None = wire(Array(STRING), nullable="0+", default=None)
    server_assignor: str | None = wire(STRING, nullable="0+", default=None)
    topic_partitions: list[TopicPartitions] | None = wire(
        Array(TopicPartitions), nullable="0+", default=None
    )


@dataclass(slots=True)
class AssignmentTopicPartitions:
    """An element of `assignment.topic_partitions` of the response."""

    topic_id: bytes = wire(UUID)
    partitions: list[int] = wire(Array(INT32))


@dataclass(slots=True)
class Assignment:
    """The struct `assignment` of the response."""

    topic_partitions: list[AssignmentTopicPartitions] = wire(Array(AssignmentTopicPartitions))


@dataclass(slots=True)
class ConsumerGroupHeartbeatResponse:
    """The response."""

    throttle_time_ms: int = wire(INT32)
    error_code: int = wire(INT16)
    error_message: str | None = wire(STRING, nullable="0+", default=None)
    member_id: str | None = wire(STRING, nullable="0+", default=None)
    member_epoch: int = wire(INT32)
    heartbeat_interval_ms: int = wire(INT32)
    assignment: Assignment | None = wire(Assignment, nullable="0+", default=None)
