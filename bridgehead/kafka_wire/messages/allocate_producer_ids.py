"""AllocateProducerIds, key 67, versions 0 to 0; flexible from 0."""

from __future__ import annotations

from dataclasses import dataclass

from bridgehead.kafka_wire.schema import INT16, INT32, INT64, wire


@dataclass(slots=True)
class AllocateProducerIdsRequest:
    """The request."""

    broker_id: int = wire(INT32)
    broker_epoch: int = wire(INT64, default=-1)


@dataclass(slots=True)
class AllocateProducerIdsResponse:
    """The response."""

    throttle_time_ms: int = wire(INT32)
    error_code: int = wire(INT16)
    producer_id_start: int = wire(INT64)
    producer_id_len: int = wire(INT32)
