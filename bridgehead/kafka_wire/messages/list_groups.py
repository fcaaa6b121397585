"""ListGroups, key 16, versions 0 to 5; flexible from 3.

Version notes:
    1: The response adds `throttle_time_ms`.
    2: Same fields as 1.
    3: First flexible version.
    4: The request adds `states_filter`. The response adds `groups.group_state`.
    5: The request adds `types_filter`. The response adds `groups.group_type`.
"""

from __future__ import annotations

from dataclasses import dataclass

from bridgehead.kafka_wire.schema import INT16, INT32, STRING, Array, wire


@dataclass(slots=True)
class ListGroupsRequest:
    """The request."""

    states_filter: list[str] = wire(Array(STRING), versions="4+")
    types_filter: list[str] = wire(Array(STRING), versions="5+")


@dataclass(slots=True)
class ListedGroup:
    """An element of `groups` of the response."""

    group_id: str = wire(STRING)
    protocol_type: str = wire(STRING)
    group_state: str = wire(STRING, versions="4+")
    group_type: str = wire(STRING, versions="5+")


@dataclass(slots=True)
class ListGroupsResponse:
    """The response."""

    throttle_time_ms: int = wire(INT32, versions="1+")
    error_code: int = wire(INT16)
    groups: list[ListedGroup] = wire(Array(ListedGroup))
