"""ConsumerGroupDescribe, key 69, versions 0 to 0; flexible from 0."""

from __future__ import annotations

from dataclasses import dataclass

from bridgehead.kafka_wire.schema import BOOL, INT16, INT32, STRING, UUID, Array, wire


@dataclass(slots=True)
class ConsumerGroupDescribeRequest:
    """The request."""

    group_ids: list[str] = wire(Array(STRING))
    include_authorized_operations: bool = wire(BOOL)


@dataclass(slots=True)
class TopicPartitions:
    """An element of `groups.members.assignment.topic_partitions` of the response."""

    topic_id: bytes = wire(UUID)
    topic_name: str = wire(STRING)
    partitions: list[int] = wire(Array(INT32))


@dataclass(slots=True)
class Assignment:
    """The struct `groups.members.assignment` of the response."""

    topic_partitions: list[TopicPartitions] = wire(Array(TopicPartitions))


@dataclass(slots=True)
class MemberAssignmentTopicPartitions:
    """An element of `groups.members.target_assignment.topic_partitions` of the response."""

    topic_id: bytes = wire(UUID)
    topic_name: str = wire(STRING)
    partitions: list[int] = wire(Array(INT32))


@dataclass(slots=True)
class MemberAssignment:
    """The struct `groups.members.target_assignment` of the response."""

    topic_partitions: list[MemberAssignmentTopicPartitions] = wire(
        Array(MemberAssignmentTopicPartitions)
    )


@dataclass(slots=True)
class Member:
    """An element of `groups.members` of the response."""

    member_id: str = wire(STRING)
    instance_id: str | None = wire(STRING, nullable="0+", default=None)
    rack_id: str | None = wire(STRING, nullable="0+", default=None)
    member_epoch: int = wire(INT32)
    client_id: str = wire(STRING)
    client_host: str = wire(STRING)
    subscribed_topic_names: list[str] = wire(Array(STRING))
    subscribed_topic_regex: str | None = wire(STRING, nullable="0+", default=None)
    assignment: Assignment = wire(Assignment)
    target_assignment: MemberAssignment = wire(MemberAssignment)


@dataclass(slots=True)
class DescribedGroup:
    """An element of `groups` of the response."""

    error_code: int = wire(INT16)
    error_message: str | None = wire(STRING, nullable="0+", default=None)
    group_id: str = wire(STRING)
    group_state: str = wire(STRING)
    group_epoch: int = wire(INT32)
    assignment_epoch: int = wire(INT32)
    assignor_name: str = wire(STRING)
    members: list[Member] = wire(Array(Member))
    authorized_operations: int = wire(INT32, default=-2147483648)


@dataclass(slots=True)
class ConsumerGroupDescribeResponse:
    """The response."""

    throttle_time_ms: int = wire(INT32)
    groups: list[DescribedGroup] = wire(Array(DescribedGroup))
