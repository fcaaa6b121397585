"""ListTransactions, key 66, versions 0 to 1; flexible from 0.

Version notes:
    1: The request adds `duration_filter`.
"""

from __future__ import annotations

from dataclasses import dataclass

from bridgehead.kafka_wire.schema import INT16, INT32, INT64, STRING, Array, wire


@dataclass(slots=True)
class ListTransactionsRequest:
    """The request."""

    state_filters: list[str] = wire(Array(STRING))
    producer_id_filters: list[int] = wire(Array(INT64))
    duration_filter: int = wire(INT64, versions="1+", default=-1)


@dataclass(slots=True)
class TransactionState:
    """An element of `transaction_states` of the response."""

    transactional_id: str = wire(STRING)
    producer_id: int = wire(INT64)
    transaction_state: str = wire(STRING)


@dataclass(slots=True)
class ListTransactionsResponse:
    """The response."""

    throttle_time_ms: int = wire(INT32)
    error_code: int = wire(INT16)
    unknown_state_filters: list[str] = wire(Array(STRING))
    transaction_states: list[TransactionState] = wire(Array(TransactionState))
