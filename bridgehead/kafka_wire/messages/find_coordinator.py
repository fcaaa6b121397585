"""FindCoordinator, key 10, versions 0 to 6; flexible from 3.

Version notes:
    1: The request adds `key_type`. The response adds `throttle_time_ms`, `error_message`.
    2: Same fields as 1.
    3: First flexible version.
    4: The request adds `coordinator_keys`; drops `key`. The response adds `coordinators`; drops
       `error_code`, `error_message`, `node_id`, `host`, `port`.
    5: Same fields as 4.
    6: Same fields as 5.
"""

from __future__ import annotations

from dataclasses import dataclass

from bridgehead.kafka_wire.schema import INT8, INT16, INT32, STRING, Array, wire


@dataclass(slots=True)
class FindCoordinatorRequest:
    """The request."""

    key: str = wire(STRING, versions="0-3")
    key_type: int = wire(INT8, versions="1+")
    coordinator_keys: list[str] = wire(Array(STRING), versions="4+")


@dataclass(slots=True)
class Coordinator:
    """An element of `coordinators` of the response. Versions 4+."""

    key: str = wire(STRING)
    node_id: int = wire(INT32)
    host: str = wire(STRING)
    port: int = wire(INT32)
    error_code: int = wire(INT16)
    error_message: str | None = wire(STRING, nullable="4+")


@dataclass(slots=True)
class FindCoordinatorResponse:
    """The response."""

    throttle_time_ms: int = wire(INT32, versions="1+")
    coordinators: list[Coordinator] = wire(Array(Coordinator), versions="4+")
    error_code: int = wire(INT16, versions="0-3")
    error_message: str | None = wire(STRING, versions="1-3", nullable="1-3")
    node_id: int = wire(INT32, versions="0-3")
    host: str = wire(STRING, versions="0-3")
    port: int = wire(INT32, versions="0-3")
