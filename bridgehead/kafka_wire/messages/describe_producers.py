"""DescribeProducers, key 61, versions 0 to 0; flexible from 0."""

from __future__ import annotations

from dataclasses import dataclass

from bridgehead.kafka_wire.schema import INT16, INT32, INT64, STRING, Array, wire


@dataclass(slots=True)
class TopicRequest:
    """An element of `topics` of the request."""

    name: str = wire(STRING)
    partition_indexes: list[int] = wire(Array(INT32))


@dataclass(slots=True)
class DescribeProducersRequest:
    """The request."""

    topics: list[TopicRequest] = wire(Array(TopicRequest))


@dataclass(slots=True)
class ProducerState:
    """An element of `topics.partitions.active_producers` of the response."""

    producer_id: int = wire(INT64)
    producer_epoch: int = wire(INT32)
    last_sequence: int = wire(INT32, default=-1)
    last_timestamp: int = wire(INT64, default=-1)
    coordinator_epoch: int = wire(INT32)
    current_txn_start_offset: int = wire(INT64, default=-1)


@dataclass(slots=True)
class PartitionResponse:
    """An element of `topics.partitions` of the response."""

    partition_index: int = wire(INT32)
    error_code: int = wire(INT16)
    error_message: str | None = wire(STRING, nullable="0+", default=None)
    active_producers: list[ProducerState] = wire(Array(ProducerState))


@dataclass(slots=True)
class TopicResponse:
    """An element of `topics` of the response."""

    name: str = wire(STRING)
    partitions: list[PartitionResponse] = wire(Array(PartitionResponse))


@dataclass(slots=True)
class DescribeProducersResponse:
    """The response."""

    throttle_time_ms: int = wire(INT32)
    topics: list[TopicResponse] = wire(Array(TopicResponse))
