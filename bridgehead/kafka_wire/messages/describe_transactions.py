"""DescribeTransactions, key 65, versions 0 to 0; flexible from 0."""

from __future__ import annotations

from dataclasses import dataclass

from bridgehead.kafka_wire.schema import INT16, INT32, INT64, STRING, Array, wire


@dataclass(slots=True)
class DescribeTransactionsRequest:
    """The request."""

    transactional_ids: list[str] = wire(Array(STRING))


@dataclass(slots=True)
class TopicData:
    """An element of `transaction_states.topics` of the response."""

    topic: str = wire(STRING)
    partitions: list[int] = wire(Array(INT32))


@dataclass(slots=True)
class TransactionState:
    """An element of `transaction_states` of the response."""

    error_code: int = wire(INT16)
    transactional_id: str = wire(STRING)
    transaction_state: str = wire(STRING)
    transaction_timeout_ms: int = wire(INT32)
    transaction_start_time_ms: int = wire(INT64)
    producer_id: int = wire(INT64)
    producer_epoch: int = wire(INT16)
    topics: list[TopicData] = wire(Array(TopicData))


@dataclass(slots=True)
class DescribeTransactionsResponse:
    """The response."""

    throttle_time_ms: int = wire(INT32)
    transaction_states: list[TransactionState] = wire(Array(TransactionState))
