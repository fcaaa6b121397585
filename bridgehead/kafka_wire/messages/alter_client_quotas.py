"""AlterClientQuotas, key 49, versions 0 to 1; flexible from 1.

Version notes:
    1: First flexible version.
"""

from __future__ import annotations

from dataclasses import dataclass

from bridgehead.kafka_wire.schema import BOOL, FLOAT64, INT16, INT32, STRING, Array, wire


@dataclass(slots=True)
class EntityData:
    """An element of `entries.entity` of the request."""

    entity_type: str = wire(STRING)
    entity_name: str | None = wire(STRING, nullable="0+")


@dataclass(slots=True)
class OpData:
    """An element of `entries.ops` of the request."""

    key: str = wire(STRING)
    value: float = wire(FLOAT64)
    remove: bool = wire(BOOL)


@dataclass(slots=True)
class EntryData:
    """An element of `entries` of the request."""

    entity: list[EntityData] = wire(Array(EntityData))
    ops: list[OpData] = wire(Array(OpData))


@dataclass(slots=True)
class AlterClientQuotasRequest:
    """The request."""

    entries: list[EntryData] = wire(Array(EntryData))
    validate_only: bool = wire(BOOL)


@dataclass(slots=True)
class AlterClientQuotasEntryDataEntityData:
    """An element of `entries.entity` of the response."""

    entity_type: str = wire(STRING)
    entity_name: str | None = wire(STRING, nullable="0+")


@dataclass(slots=True)
class AlterClientQuotasEntryData:
    """An element of `entries` of the response."""

    error_code: int = wire(INT16)
    error_message: str | None = wire(STRING, nullable="0+")
    entity: list[AlterClientQuotasEntryDataEntityData] = wire(
        Array(AlterClientQuotasEntryDataEntityData)
    )


@dataclass(slots=True)
class AlterClientQuotasResponse:
    """The response."""

    throttle_time_ms: int = wire(INT32)
    entries: list[AlterClientQuotasEntryData] = wire(Array(AlterClientQuotasEntryData))
