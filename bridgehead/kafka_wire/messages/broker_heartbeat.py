"""BrokerHeartbeat, key 63, versions 0 and 1; flexible from 0.

Version notes:
    1: The request adds `offline_log_dirs`.
"""

from __future__ import annotations

from dataclasses import dataclass

from bridgehead.kafka_wire.schema import BOOL, INT16, INT32, INT64, UUID, Array, wire


@dataclass(slots=True)
class BrokerHeartbeatRequest:
    """The request."""

    broker_id: int = wire(INT32)
    broker_epoch: int = wire(INT64, default=-1)
    current_metadata_offset: int = wire(INT64)
    want_fence: bool = wire(BOOL)
    want_shut_down: bool = wire(BOOL)
    offline_log_dirs: list[bytes] = wire(Array(UUID), versions="1+", tag=0)


@dataclass(slots=True)
class BrokerHeartbeatResponse:
    """The response."""

    throttle_time_ms: int = wire(INT32)
    error_code: int = wire(INT16)
    is_caught_up: bool = wire(BOOL)
    is_fenced: bool = wire(BOOL, default=True)
    should_shut_down: bool = wire(BOOL)
