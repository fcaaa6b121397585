"""DeleteGroups, key 42, versions 0 to 2; flexible from 2.

Version notes:
    1: Same fields as 0.
    2: First flexible version.
"""

from __future__ import annotations

from dataclasses import dataclass

from bridgehead.kafka_wire.schema import INT16, INT32, STRING, Array, wire


@dataclass(slots=True)
class DeleteGroupsRequest:
    """The request."""

    groups_names: list[str] = wire(Array(STRING))


@dataclass(slots=True)
class DeletableGroupResult:
    """An element of `results` of the response."""

    group_id: str = wire(STRING)
    error_code: int = wire(INT16)


@dataclass(slots=True)
class DeleteGroupsResponse:
    """The response."""

    throttle_time_ms: int = wire(INT32)
    results: list[DeletableGroupResult] = wire(Array(DeletableGroupResult))
