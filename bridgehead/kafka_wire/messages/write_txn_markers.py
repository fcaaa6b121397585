"""WriteTxnMarkers, key 27, versions 0 to 1; flexible from 1.

Version notes:
    1: First flexible version.
"""

from __future__ import annotations

from dataclasses import dataclass

from bridgehead.kafka_wire.schema import BOOL, INT16, INT32, INT64, STRING, Array, wire


@dataclass(slots=True)
class WritableTxnMarkerTopic:
    """An element of `markers.topics` of the request."""

    name: str = wire(STRING)
    partition_indexes: list[int] = wire(Array(INT32))


@dataclass(slots=True)
class WritableTxnMarker:
    """An element of `markers` of the request."""

    producer_id: int = wire(INT64)
    producer_epoch: int = wire(INT16)
    transaction_result: bool = wire(BOOL)
    topics: list[WritableTxnMarkerTopic] = wire(Array(WritableTxnMarkerTopic))
    coordinator_epoch: int = wire(INT32)


@dataclass(slots=True)
class WriteTxnMarkersRequest:
    """The request."""

    markers: list[WritableTxnMarker] = wire(Array(WritableTxnMarker))


@dataclass(slots=True)
class WritableTxnMarkerPartitionResult:
    """An element of `markers.topics.partitions` of the response."""

    partition_index: int = wire(INT32)
    error_code: int = wire(INT16)


@dataclass(slots=True)
class WritableTxnMarkerTopicResult:
    """An element of `markers.topics` of the response."""

    name: str = wire(STRING)
    partitions: list[WritableTxnMarkerPartitionResult] = wire(
        Array(WritableTxnMarkerPartitionResult)
    )


@dataclass(slots=True)
class WritableTxnMarkerResult:
    """An element of `markers` of the response."""

    producer_id: int = wire(INT64)
    topics: list[WritableTxnMarkerTopicResult] = wire(Array(WritableTxnMarkerTopicResult))


@dataclass(slots=True)
class WriteTxnMarkersResponse:
    """The response."""

    markers: list[WritableTxnMarkerResult] = wire(Array(WritableTxnMarkerResult))
