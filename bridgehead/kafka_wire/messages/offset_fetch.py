"""OffsetFetch, key 9, versions 0 to 9; flexible from 6.

Version notes:
    1: Same fields as 0.
    2: In the request `topics` may be null. The response adds `error_code`.
    3: The response adds `throttle_time_ms`.
    4: Same fields as 3.
    5: The response adds `topics.partitions.committed_leader_epoch`.
    6: First flexible version.
    7: The request adds `require_stable`.
    8: The request adds `groups`; drops `group_id`, `topics`. The response adds `groups`; drops
       `topics`, `error_code`.
    9: The request adds `groups.member_id`, `groups.member_epoch`.
"""

from __future__ import annotations

from dataclasses import dataclass

from bridgehead.kafka_wire.schema import BOOL, INT16, INT32, INT64, STRING, Array, wire


@dataclass(slots=True)
class OffsetFetchRequestTopics:
    """An element of `groups.topics` of the request. Versions 8+."""

    name: str = wire(STRING)
    partition_indexes: list[int] = wire(Array(INT32))


@dataclass(slots=True)
class OffsetFetchRequestGroup:
    """An element of `groups` of the request. Versions 8+."""

    group_id: str = wire(STRING)
    member_id: str | None = wire(STRING, versions="9+", nullable="9+", default=None)
    member_epoch: int = wire(INT32, versions="9+", default=-1)
    topics: list[OffsetFetchRequestTopics] | None = wire(
        Array(OffsetFetchRequestTopics), nullable="8+"
    )


@dataclass(slots=True)
class OffsetFetchRequestTopic:
    """An element of `topics` of the request. Versions 0-7."""

    name: str = wire(STRING)
    partition_indexes: list[int] = wire(Array(INT32))


@dataclass(slots=True)
class OffsetFetchRequest:
    """The request."""

    groups: list[OffsetFetchRequestGroup] = wire(Array(OffsetFetchRequestGroup), versions="8+")
    group_id: str = wire(STRING, versions="0-7")
    topics: list[OffsetFetchRequestTopic] | None = wire(
        Array(OffsetFetchRequestTopic), versions="0-7", nullable="2-7"
    )
    require_stable: bool = wire(BOOL, versions="7+")


@dataclass(slots=True)
class OffsetFetchResponsePartitions:
    """An element of `groups.topics.partitions` of the response. Versions 8+."""

    partition_index: int = wire(INT32)
    committed_offset: int = wire(INT64)
    committed_leader_epoch: int = wire(INT32, default=-1)
    metadata: str | None = wire(STRING, nullable="8+")
    error_code: int = wire(INT16)


@dataclass(slots=True)
class OffsetFetchResponseTopics:
    """An element of `groups.topics` of the response. Versions 8+."""

    name: str = wire(STRING)
    partitions: list[OffsetFetchResponsePartitions] = wire(Array(OffsetFetchResponsePartitions))


@dataclass(slots=True)
class OffsetFetchResponseGroup:
    """An element of `groups` of the response. Versions 8+."""

    group_id: str = wire(STRING)
    topics: list[OffsetFetchResponseTopics] = wire(Array(OffsetFetchResponseTopics))
    error_code: int = wire(INT16)


@dataclass(slots=True)
class OffsetFetchResponsePartition:
    """An element of `topics.partitions` of the response. Versions 0-7."""

    partition_index: int = wire(INT32)
    committed_offset: int = wire(INT64)
    committed_leader_epoch: int = wire(INT32, versions="5-7", default=-1)
    metadata: str | None = wire(STRING, nullable="0-7")
    error_code: int = wire(INT16)


@dataclass(slots=True)
class OffsetFetchResponseTopic:
    """An element of `topics` of the response. Versions 0-7."""

    name: str = wire(STRING)
    partitions: list[OffsetFetchResponsePartition] = wire(Array(OffsetFetchResponsePartition))


@dataclass(slots=True)
class OffsetFetchResponse:
    """The response."""

    throttle_time_ms: int = wire(INT32, versions="3+")
    groups: list[OffsetFetchResponseGroup] = wire(Array(OffsetFetchResponseGroup), versions="8+")
    topics: list[OffsetFetchResponseTopic] = wire(Array(OffsetFetchResponseTopic), versions="0-7")
    error_code: int = wire(INT16, versions="2-7")
