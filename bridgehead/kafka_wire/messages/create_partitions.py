"""CreatePartitions, key 37, versions 0 to 3; flexible from 2.

Version notes:
    1: Same fields as 0.
    2: First flexible version.
    3: Same fields as 2.
"""

from __future__ import annotations

from dataclasses import dataclass

from bridgehead.kafka_wire.schema import BOOL, INT16, INT32, STRING, Array, wire


@dataclass(slots=True)
class CreatePartitionsAssignment:
    """An element of `topics.assignments` of the request."""

    broker_ids: list[int] = wire(Array(INT32))


@dataclass(slots=True)
class CreatePartitionsTopic:
    """An element of `topics` of the request."""

    name: str = wire(STRING)
    count: int = wire(INT32)
    assignments: list[CreatePartitionsAssignment] | None = wire(
        Array(CreatePartitionsAssignment), nullable="0+"
    )


@dataclass(slots=True)
class CreatePartitionsRequest:
    """The request."""

    topics: list[CreatePartitionsTopic] = wire(Array(CreatePartitionsTopic))
    timeout_ms: int = wire(INT32)
    validate_only: bool = wire(BOOL)


@dataclass(slots=True)
class CreatePartitionsTopicResult:
    """An element of `results` of the response."""

    name: str = wire(STRING)
    error_code: int = wire(INT16)
    error_message: str | None = wire(STRING, nullable="0+", default=None)


@dataclass(slots=True)
class CreatePartitionsResponse:
    """The response."""

    throttle_time_ms: int = wire(INT32)
    results: list[CreatePartitionsTopicResult] = wire(Array(CreatePartitionsTopicResult))
