"""Heartbeat, key 12, versions 0 to 4; flexible from 4.

Version notes:
    1: The response adds `throttle_time_ms`.
    2: Same fields as 1.
    3: The request adds `group_instance_id`.
    4: First flexible version.
"""

from __future__ import annotations

from dataclasses import dataclass

from bridgehead.kafka_wire.schema import INT16, INT32, STRING, wire


@dataclass(slots=True)
class HeartbeatRequest:
    """The request."""

    group_id: str = wire(STRING)
    generation_id: int = wire(INT32)
    member_id: str = wire(STRING)
    group_instance_id: str | None = wire(STRING, versions="3+", nullable="3+", default=None)


@dataclass(slots=True)
class HeartbeatResponse:
    """The response."""

    throttle_time_ms: int = wire(INT32, versions="1+")
    error_code: int = wire(INT16)
