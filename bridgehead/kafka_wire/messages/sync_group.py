"""SyncGroup, key 14, versions 0 to 5; flexible from 4.

Version notes:
    1: The response adds `throttle_time_ms`.
    2: Same fields as 1.
    3: The request adds `group_instance_id`.
    4: First flexible version.
    5: The request adds `protocol_type`, `protocol_name`. The response adds `protocol_type`,
       `protocol_name`.
"""

from __future__ import annotations

from dataclasses import dataclass

from bridgehead.kafka_wire.schema import BYTES, INT16, INT32, STRING, Array, wire


@dataclass(slots=True)
class SyncGroupRequestAssignment:
    """An element of `assignments` of the request."""

    member_id: str = wire(STRING)
    assignment: bytes = wire(BYTES)


@dataclass(slots=True)
class SyncGroupRequest:
    """The request."""

    group_id: str = wire(STRING)
    generation_id: int = wire(INT32)
    member_id: str = wire(STRING)
    group_instance_id: str | None = wire(STRING, versions="3+", nullable="3+", default=None)
    protocol_type: str | None = wire(STRING, versions="5+", nullable="5+", default=None)
    protocol_name: str | None = wire(STRING, versions="5+", nullable="5+", default=None)
    assignments: list[SyncGroupRequestAssignment] = wire(Array(SyncGroupRequestAssignment))


@dataclass(slots=True)
class SyncGroupResponse:
    """The response."""

    throttle_time_ms: int = wire(INT32, versions="1+")
    error_code: int = wire(INT16)
    protocol_type: str | None = wire(STRING, versions="5+", nullable="5+", default=None)
    protocol_name: str | None = wire(STRING, versions="5+", nullable="5+", default=None)
    assignment: bytes = wire(BYTES)
