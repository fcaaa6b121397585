"""ListOffsets, key 2, versions 0 to 9; flexible from 6.

Version notes:
    1: The request drops `topics.partitions.max_num_offsets`. The response adds
       `topics.partitions.timestamp`, `topics.partitions.offset`; drops
       `topics.partitions.old_style_offsets`.
    2: The request adds `isolation_level`. The response adds `throttle_time_ms`.
    3: Same fields as 2.
    4: The request adds `topics.partitions.current_leader_epoch`. The response adds
       `topics.partitions.leader_epoch`.
    5: Same fields as 4.
    6: First flexible version.
    7: Same fields as 6.
    8: Same fields as 7.
    9: Same fields as 8.
"""

from __future__ import annotations

from dataclasses import dataclass

from bridgehead.kafka_wire.schema import INT8, INT16, INT32, INT64, STRING, Array, wire


@dataclass(slots=True)
class ListOffsetsPartition:
    """An element of `topics.partitions` of the request."""

    partition_index: int = wire(INT32)
    current_leader_epoch: int = wire(INT32, versions="4+", default=-1)
    timestamp: int = wire(INT64)
    max_num_offsets: int = wire(INT32, versions="0", default=1)


@dataclass(slots=True)
class ListOffsetsTopic:
    """An element of `topics` of the request."""

    name: str = wire(STRING)
    partitions: list[ListOffsetsPartition] = wire(Array(ListOffsetsPartition))


@dataclass(slots=True)
class ListOffsetsRequest:
    """The request."""

    replica_id: int = wire(INT32)
    isolation_level: int = wire(INT8, versions="2+")
    topics: list[ListOffsetsTopic] = wire(Array(ListOffsetsTopic))


@dataclass(slots=True)
class ListOffsetsPartitionResponse:
    """An element of `topics.partitions` of the response."""

    partition_index: int = wire(INT32)
    error_code: int = wire(INT16)
    timestamp: int = wire(INT64, versions="1+", default=-1)
    offset: int = wire(INT64, versions="1+", default=-1)
    leader_epoch: int = wire(INT32, versions="4+", default=-1)
    old_style_offsets: list[int] = wire(Array(INT64), versions="0")


@dataclass(slots=True)
class ListOffsetsTopicResponse:
    """An element of `topics` of the response."""

    name: str = wire(STRING)
    partitions: list[ListOffsetsPartitionResponse] = wire(Array(ListOffsetsPartitionResponse))


@dataclass(slots=True)
class ListOffsetsResponse:
    """The response."""

    throttle_time_ms: int = wire(INT32, versions="2+")
    topics: list[ListOffsetsTopicResponse] = wire(Array(ListOffsetsTopicResponse))
