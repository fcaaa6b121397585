"""AddPartitionsToTxn, key 24, versions 0 to 5; flexible from 3.

Version notes:
    1: Same fields as 0.
    2: Same fields as 1.
    3: First flexible version.
    4: The request adds `transactions`; drops `v3_and_below_transactional_id`,
       `v3_and_below_producer_id`, `v3_and_below_producer_epoch`, `v3_and_below_topics`. The
       response adds `error_code`, `results_by_transaction`; drops
       `results_by_topic_v3_and_below`.
    5: Same fields as 4.
"""

from __future__ import annotations

from dataclasses import dataclass

from bridgehead.kafka_wire.schema import BOOL, INT16, INT32, INT64, STRING, Array, wire


@dataclass(slots=True)
class AddPartitionsToTxnTopic:
    """An element of `transactions.topics`; up to version 3, of `v3_and_below_topics`."""

    name: str = wire(STRING)
    partitions: list[int] = wire(Array(INT32))


@dataclass(slots=True)
class AddPartitionsToTxnTransaction:
    """An element of `transactions` of the request. Versions 4+."""

    transactional_id: str = wire(STRING)
    producer_id: int = wire(INT64)
    producer_epoch: int = wire(INT16)
    verify_only: bool = wire(BOOL)
    topics: list[AddPartitionsToTxnTopic] = wire(Array(AddPartitionsToTxnTopic))


@dataclass(slots=True)
class AddPartitionsToTxnRequest:
    """The request."""

    transactions: list[AddPartitionsToTxnTransaction] = wire(
        Array(AddPartitionsToTxnTransaction), versions="4+"
    )
    v3_and_below_transactional_id: str = wire(STRING, versions="0-3")
    v3_and_below_producer_id: int = wire(INT64, versions="0-3")
    v3_and_below_producer_epoch: int = wire(INT16, versions="0-3")
    v3_and_below_topics: list[AddPartitionsToTxnTopic] = wire(
        Array(AddPartitionsToTxnTopic), versions="0-3"
    )


@dataclass(slots=True)
class AddPartitionsToTxnPartitionResult:
    """An element of `results_by_partition` of an `AddPartitionsToTxnTopicResult`."""

    partition_index: int = wire(INT32)
    partition_error_code: int = wire(INT16)


@dataclass(slots=True)
class AddPartitionsToTxnTopicResult:
    """An element of `topic_results`; up to version 3, of `results_by_topic_v3_and_below`."""

    name: str = wire(STRING)
    results_by_partition: list[AddPartitionsToTxnPartitionResult] = wire(
        Array(AddPartitionsToTxnPartitionResult)
    )


@dataclass(slots=True)
class AddPartitionsToTxnResult:
    """An element of `results_by_transaction` of the response. Versions 4+."""

    transactional_id: str = wire(STRING)
    topic_results: list[AddPartitionsToTxnTopicResult] = wire(Array(AddPartitionsToTxnTopicResult))


@dataclass(slots=True)
class AddPartitionsToTxnResponse:
    """The response."""

    throttle_time_ms: int = wire(INT32)
    error_code: int = wire(INT16, versions="4+")
    results_by_transaction: list[AddPartitionsToTxnResult] = wire(
        Array(AddPartitionsToTxnResult), versions="4+"
    )
    results_by_topic_v3_and_below: list[AddPartitionsToTxnTopicResult] = wire(
        Array(AddPartitionsToTxnTopicResult), versions="0-3"
    )
