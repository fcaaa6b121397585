"""EndTxn, key 26, versions 0 to 4; flexible from 3.

Version notes:
    1: Same fields as 0.
    2: Same fields as 1.
    3: First flexible version.
    4: Same fields as 3.
"""

from __future__ import annotations

from dataclasses import dataclass

from bridgehead.kafka_wire.schema import BOOL, INT16, INT32, INT64, STRING, wire


@dataclass(slots=True)
class EndTxnRequest:
    """The request."""

    transactional_id: str = wire(STRING)
    producer_id: int = wire(INT64)
    producer_epoch: int = wire(INT16)
    committed: bool = wire(BOOL)


@dataclass(slots=True)
class EndTxnResponse:
    """The response."""

    throttle_time_ms: int = wire(INT32)
    error_code: int = wire(INT16)
