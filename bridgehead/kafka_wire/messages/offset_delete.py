"""OffsetDelete, key 47, versions 0 to 0; never flexible."""

from __future__ import annotations

from dataclasses import dataclass

from bridgehead.kafka_wire.schema import INT16, INT32, STRING, Array, wire


@dataclass(slots=True)
class OffsetDeleteRequestPartition:
    """An element of `topics.partitions` of the request."""

    partition_index: int = wire(INT32)


@dataclass(slots=True)
class OffsetDeleteRequestTopic:
    """An element of `topics` of the request."""

    name: str = wire(STRING)
    partitions: list[OffsetDeleteRequestPartition] = wire(Array(OffsetDeleteRequestPartition))


@dataclass(slots=True)
class OffsetDeleteRequest:
    """The request."""

    group_id: str = wire(STRING)
    topics: list[OffsetDeleteRequestTopic] = wire(Array(OffsetDeleteRequestTopic))


@dataclass(slots=True)
class OffsetDeleteResponsePartition:
    """An element of `topics.partitions` of the response."""

    partition_index: int = wire(INT32)
    error_code: int = wire(INT16)


@dataclass(slots=True)
class OffsetDeleteResponseTopic:
    """An element of `topics` of the response."""

    name: str = wire(STRING)
    partitions: list[OffsetDeleteResponsePartition] = wire(Array(OffsetDeleteResponsePartition))


@dataclass(slots=True)
class OffsetDeleteResponse:
    """The response."""

    error_code: int = wire(INT16)
    throttle_time_ms: int = wire(INT32)
    topics: list[OffsetDeleteResponseTopic] = wire(Array(OffsetDeleteResponseTopic))
