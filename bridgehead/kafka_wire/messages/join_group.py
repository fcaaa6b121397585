"""JoinGroup, key 11, versions 0 to 9; flexible from 6.

Version notes:
    1: The request adds `rebalance_timeout_ms`.
    2: The response adds `throttle_time_ms`.
    3: Same fields as 2.
    4: Same fields as 3.
    5: The request adds `group_instance_id`. The response adds `members.group_instance_id`.
    6: First flexible version.
    7: The response adds `protocol_type`; `protocol_name` may be null.
    8: The request adds `reason`.
    9: The response adds `skip_assignment`.
"""

from __future__ import annotations

from dataclasses import dataclass

from bridgehead.kafka_wire.schema import BOOL, BYTES, INT16, INT32, STRING, Array, wire


@dataclass(slots=True)
class JoinGroupRequestProtocol:
    """An element of `protocols` of the request."""

    name: str = wire(STRING)
    metadata: bytes = wire(BYTES)


@dataclass(slots=True)
class JoinGroupRequest:
    """The request."""

    group_id: str = wire(STRING)
    session_timeout_ms: int = wire(INT32)
    rebalance_timeout_ms: int = wire(INT32, versions="1+", default=-1)
    member_id: str = wire(STRING)
    group_instance_id: str | None = wire(STRING, versions="5+", nullable="5+", default=None)
    protocol_type: str = wire(STRING)
    protocols: list[JoinGroupRequestProtocol] = wire(Array(JoinGroupRequestProtocol))
    reason: str | None = wire(STRING, versions="8+", nullable="8+", default=None)


@dataclass(slots=True)
class JoinGroupResponseMember:
    """An element of `members` of the response."""

    member_id: str = wire(STRING)
    group_instance_id: str | None = wire(STRING, versions="5+", nullable="5+", default=None)
    metadata: bytes = wire(BYTES)


@dataclass(slots=True)
class JoinGroupResponse:
    """The response."""

    throttle_time_ms: int = wire(INT32, versions="2+")
    error_code: int = wire(INT16)
    generation_id: int = wire(INT32, default=-1)
    protocol_type: str | None = wire(STRING, versions="7+", nullable="7+", default=None)
    protocol_name: str | None = wire(STRING, nullable="7+")
    leader: str = wire(STRING)
    skip_assignment: bool = wire(BOOL, versions="9+")
    member_id: str = wire(STRING)
    members: list[JoinGroupResponseMember] = wire(Array(JoinGroupResponseMember))
