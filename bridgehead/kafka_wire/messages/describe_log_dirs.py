"""DescribeLogDirs, key 35, versions 0 to 4; flexible from 2.

Version notes:
    1: Same fields as 0.
    2: First flexible version.
    3: The response adds `error_code`.
    4: The response adds `results.total_bytes`, `results.usable_bytes`.
"""

from __future__ import annotations

from dataclasses import dataclass

from bridgehead.kafka_wire.schema import BOOL, INT16, INT32, INT64, STRING, Array, wire


@dataclass(slots=True)
class DescribableLogDirTopic:
    """An element of `topics` of the request."""

    topic: str = wire(STRING)
    partitions: list[int] = wire(Array(INT32))


@dataclass(slots=True)
class DescribeLogDirsRequest:
    """The request."""

    topics: list[DescribableLogDirTopic] | None = wire(Array(DescribableLogDirTopic), nullable="0+")


@dataclass(slots=True)
class DescribeLogDirsPartition:
    """An element of `results.topics.partitions` of the response."""

    partition_index: int = wire(INT32)
    partition_size: int = wire(INT64)
    offset_lag: int = wire(INT64)
    is_future_key: bool = wire(BOOL)


@dataclass(slots=True)
class DescribeLogDirsTopic:
    """An element of `results.topics` of the response."""

    name: str = wire(STRING)
    partitions: list[DescribeLogDirsPartition] = wire(Array(DescribeLogDirsPartition))


@dataclass(slots=True)
class DescribeLogDirsResult:
    """An element of `results` of the response."""

    error_code: int = wire(INT16)
    log_dir: str = wire(STRING)
    topics: list[DescribeLogDirsTopic] = wire(Array(DescribeLogDirsTopic))
    total_bytes: int = wire(INT64, versions="4+", default=-1)
    usable_bytes: int = wire(INT64, versions="4+", default=-1)


@dataclass(slots=True)
class DescribeLogDirsResponse:
    """The response."""

    throttle_time_ms: int = wire(INT32)
    error_code: int = wire(INT16, versions="3+")
    results: list[DescribeLogDirsResult] = wire(Array(DescribeLogDirsResult))
