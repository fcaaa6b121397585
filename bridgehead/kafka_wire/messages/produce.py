"""Produce, key 0, versions 0 to 11; flexible from 9.

Version notes:
    1: The response adds `throttle_time_ms`.
    2: The response adds `responses.partition_responses.log_append_time_ms`.
    3: The request adds `transactional_id`.
    4: Same fields as 3.
    5: The response adds `responses.partition_responses.log_start_offset`.
    6: Same fields as 5.
    7: Same fields as 6.
    8: The response adds `responses.partition_responses.record_errors`,
       `responses.partition_responses.error_message`.
    9: First flexible version.
    10: The response adds `responses.partition_responses.current_leader`, `node_endpoints`.
    11: Same fields as 10.
"""

from __future__ import annotations

from dataclasses import dataclass

from bridgehead.kafka_wire.schema import INT16, INT32, INT64, RECORDS, STRING, Array, wire


@dataclass(slots=True)
class PartitionProduceData:
    """An element of `topic_data.partition_data` of the request."""

    index: int = wire(INT32)
    records: bytes | None = wire(RECORDS, nullable="0+")


@dataclass(slots=True)
class TopicProduceData:
    """An element of `topic_data` of the request."""

    name: str = wire(STRING)
    partition_data: list[PartitionProduceData] = wire(Array(PartitionProduceData))


@dataclass(slots=True)
class ProduceRequest:
    """The request."""

    transactional_id: str | None = wire(STRING, versions="3+", nullable="3+", default=None)
    acks: int = wire(INT16)
    timeout_ms: int = wire(INT32)
    topic_data: list[TopicProduceData] = wire(Array(TopicProduceData))


@dataclass(slots=True)
class BatchIndexAndErrorMessage:
    """An element of `responses.partition_responses.record_errors` of the response. Versions 8+."""

    batch_index: int = wire(INT32)
    batch_index_error_message: str | None = wire(STRING, nullable="8+", default=None)


@dataclass(slots=True)
class LeaderIdAndEpoch:
    """The struct `responses.partition_responses.current_leader` of the response. Versions 10+."""

    leader_id: int = wire(INT32, default=-1)
    leader_epoch: int = wire(INT32, default=-1)


@dataclass(slots=True)
class PartitionProduceResponse:
    """An element of `responses.partition_responses` of the response."""

    index: int = wire(INT32)
    error_code: int = wire(INT16)
    base_offset: int = wire(INT64)
    log_append_time_ms: int = wire(INT64, versions="2+", default=-1)
    log_start_offset: int = wire(INT64, versions="5+", default=-1)
    record_errors: list[BatchIndexAndErrorMessage] = wire(
        Array(BatchIndexAndErrorMessage), versions="8+"
    )
    error_message: str | None = wire(STRING, versions="8+", nullable="8+", default=None)
    current_leader: LeaderIdAndEpoch = wire(LeaderIdAndEpoch, versions="10+", tag=0)


@dataclass(slots=True)
class TopicProduceResponse:
    """An element of `responses` of the response."""

    name: str = wire(STRING)
    partition_responses: list[PartitionProduceResponse] = wire(Array(PartitionProduceResponse))


@dataclass(slots=True)
class NodeEndpoint:
    """An element of `node_endpoints` of the response. Versions 10+."""

    node_id: int = wire(INT32)
    host: str = wire(STRING)
    port: int = wire(INT32)
    rack: str | None = wire(STRING, nullable="10+", default=None)


@dataclass(slots=True)
class ProduceResponse:
    """The response."""

    responses: list[TopicProduceResponse] = wire(Array(TopicProduceResponse))
    throttle_time_ms: int = wire(INT32, versions="1+")
    node_endpoints: list[NodeEndpoint] = wire(Array(NodeEndpoint), versions="10+", tag=0)
