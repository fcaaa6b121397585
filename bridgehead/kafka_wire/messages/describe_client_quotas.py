"""DescribeClientQuotas, key 48, versions 0 to 1; flexible from 1.

Version notes:
    1: First flexible version.
"""

from __future__ import annotations

from dataclasses import dataclass

from bridgehead.kafka_wire.schema import BOOL, FLOAT64, INT8, INT16, INT32, STRING, Array, wire


@dataclass(slots=True)
class ComponentData:
    """An element of `components` of the request."""

    entity_type: str = wire(STRING)
    match_type: int = wire(INT8)
    match: str | None = wire(STRING, nullable="0+")


@dataclass(slots=True)
class DescribeClientQuotasRequest:
    """The request."""

    components: list[ComponentData] = wire(Array(ComponentData))
    strict: bool = wire(BOOL)


@dataclass(slots=True)
class EntityData:
    """An element of `entries.entity` of the response."""

    entity_type: str = wire(STRING)
    entity_name: str | None = wire(STRING, nullable="0+")


@dataclass(slots=True)
class ValueData:
    """An element of `entries.values` of the response."""

    key: str = wire(STRING)
    value: float = wire(FLOAT64)


@dataclass(slots=True)
class EntryData:
    """An element of `entries` of the response."""

    entity: list[EntityData] = wire(Array(EntityData))
    values: list[ValueData] = wire(Array(ValueData))


@dataclass(slots=True)
class DescribeClientQuotasResponse:
    """The response."""

    throttle_time_ms: int = wire(INT32)
    error_code: int = wire(INT16)
    error_message: str | None = wire(STRING, nullable="0+")
    entries: list[EntryData] | None = wire(Array(EntryData), nullable="0+")
