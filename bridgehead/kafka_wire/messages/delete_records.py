"""DeleteRecords, key 21, versions 0 to 2; flexible from 2.

Version notes:
    1: Same fields as 0.
    2: First flexible version.
"""

from __future__ import annotations

from dataclasses import dataclass

from bridgehead.kafka_wire.schema import INT16, INT32, INT64, STRING, Array, wire


@dataclass(slots=True)
class DeleteRecordsPartition:
    """An element of `topics.partitions` of the request."""

    partition_index: int = wire(INT32)
    offset: int = wire(INT64)


@dataclass(slots=True)
class DeleteRecordsTopic:
    """An element of `topics` of the request."""

    name: str = wire(STRING)
    partitions: list[DeleteRecordsPartition] = wire(Array(DeleteRecordsPartition))


@dataclass(slots=True)
class DeleteRecordsRequest:
    """The request."""

    topics: list[DeleteRecordsTopic] = wire(Array(DeleteRecordsTopic))
    timeout_ms: int = wire(INT32)


@dataclass(slots=True)
class DeleteRecordsPartitionResult:
    """An element of `topics.partitions` of the response."""

    partition_index: int = wire(INT32)
    low_watermark: int = wire(INT64)
    error_code: int = wire(INT16)


@dataclass(slots=True)
class DeleteRecordsTopicResult:
    """An element of `topics` of the response."""

    name: str = wire(STRING)
    partitions: list[DeleteRecordsPartitionResult] = wire(Array(DeleteRecordsPartitionResult))


@dataclass(slots=True)
class DeleteRecordsResponse:
    """The response."""

    throttle_time_ms: int = wire(INT32)
    topics: list[DeleteRecordsTopicResult] = wire(Array(DeleteRecordsTopicResult))
