"""LeaveGroup, key 13, versions 0 to 5; flexible from 4.

Version notes:
    1: The response adds `throttle_time_ms`.
    2: Same fields as 1.
    3: The request adds `members`; drops `member_id`. The response adds `members`.
    4: First flexible version.
    5: The request adds `members.reason`.
"""

from __future__ import annotations

from dataclasses import dataclass

from bridgehead.kafka_wire.schema import INT16, INT32, STRING, Array, wire


@dataclass(slots=True)
class MemberIdentity:
    """An element of `members` of the request. Versions 3+."""

    member_id: str = wire(STRING)
    group_instance_id: str | None = wire(STRING, nullable="3+", default=None)
    reason: str | None = wire(STRING, versions="5+", nullable="5+", default=None)


@dataclass(slots=True)
class LeaveGroupRequest:
    """The request."""

    group_id: str = wire(STRING)
    members: list[MemberIdentity] = wire(Array(MemberIdentity), versions="3+")
    member_id: str = wire(STRING, versions="0-2")


@dataclass(slots=True)
class MemberResponse:
    """An element of `members` of the response. Versions 3+."""

    member_id: str = wire(STRING)
    group_instance_id: str | None = wire(STRING, nullable="3+")
    error_code: int = wire(INT16)


@dataclass(slots=True)
class LeaveGroupResponse:
    """The response."""

    throttle_time_ms: int = wire(INT32, versions="1+")
    error_code: int = wire(INT16)
    members: list[MemberResponse] = wire(Array(MemberResponse), versions="3+")
