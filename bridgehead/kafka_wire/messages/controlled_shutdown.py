"""ControlledShutdown, key 7, versions 0 to 3; flexible from 3.

Version notes:
    1: Same fields as 0.
    2: The request adds `broker_epoch`.
    3: First flexible version.
"""

from __future__ import annotations

from dataclasses import dataclass

from bridgehead.kafka_wire.schema import INT16, INT32, INT64, STRING, Array, wire


@dataclass(slots=True)
class ControlledShutdownRequest:
    """The request."""

    broker_id: int = wire(INT32)
    broker_epoch: int = wire(INT64, versions="2+", default=-1)


@dataclass(slots=True)
class RemainingPartition:
    """An element of `remaining_partitions` of the response."""

    topic_name: str = wire(STRING)
    partition_index: int = wire(INT32)


@dataclass(slots=True)
class ControlledShutdownResponse:
    """The response."""

    error_code: int = wire(INT16)
    remaining_partitions: list[RemainingPartition] = wire(Array(RemainingPartition))
