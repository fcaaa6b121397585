"""InitProducerId, key 22, versions 0 to 5; flexible from 2.

Version notes:
    1: Same fields as 0.
    2: First flexible version.
    3: The request adds `producer_id`, `producer_epoch`.
    4: Same fields as 3.
    5: Same fields as 4.
"""

from __future__ import annotations

from dataclasses import dataclass

from bridgehead.kafka_wire.schema import INT16, INT32, INT64, STRING, wire


@dataclass(slots=True)
class InitProducerIdRequest:
    """The request."""

    transactional_id: str | None = wire(STRING, nullable="0+")
    transaction_timeout_ms: int = wire(INT32)
    producer_id: int = wire(INT64, versions="3+", default=-1)
    producer_epoch: int = wire(INT16, versions="3+", default=-1)


@dataclass(slots=True)
class InitProducerIdResponse:
    """The response."""

    throttle_time_ms: int = wire(INT32)
    error_code: int = wire(INT16)
    producer_id: int = wire(INT64, default=-1)
    producer_epoch: int = wire(INT16)
