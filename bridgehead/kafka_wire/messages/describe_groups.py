"""DescribeGroups, key 15, versions 0 to 5; flexible from 5.

Version notes:
    1: The response adds `throttle_time_ms`.
    2: Same fields as 1.
    3: The request adds `include_authorized_operations`. The response adds
       `groups.authorized_operations`.
    4: The response adds `groups.members.group_instance_id`.
    5: First flexible version.
"""

from __future__ import annotations

from dataclasses import dataclass

from bridgehead.kafka_wire.schema import BOOL, BYTES, INT16, INT32, STRING, Array, wire


@dataclass(slots=True)
class DescribeGroupsRequest:
    """The request."""

    groups: list[str] = wire(Array(STRING))
    include_authorized_operations: bool = wire(BOOL, versions="3+")


@dataclass(slots=True)
class DescribedGroupMember:
    """An element of `groups.members` of the response."""

    member_id: str = wire(STRING)
    group_instance_id: str | None = wire(STRING, versions="4+", nullable="4+", default=None)
    client_id: str = wire(STRING)
    client_host: str = wire(STRING)
    member_metadata: bytes = wire(BYTES)
    member_assignment: bytes = wire(BYTES)


@dataclass(slots=True)
class DescribedGroup:
    """An element of `groups` of the response."""

    error_code: int = wire(INT16)
    group_id: str = wire(STRING)
    group_state: str = wire(STRING)
    protocol_type: str = wire(STRING)
    protocol_data: str = wire(STRING)
    members: list[DescribedGroupMember] = wire(Array(DescribedGroupMember))
    authorized_operations: int = wire(INT32, versions="3+", default=-2147483648)


@dataclass(slots=True)
class DescribeGroupsResponse:
    """The response."""

    throttle_time_ms: int = wire(INT32, versions="1+")
    groups: list[DescribedGroup] = wire(Array(DescribedGroup))
