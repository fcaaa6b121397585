"""Envelope, key 58, versions 0 to 0; flexible from 0."""

from __future__ import annotations

from dataclasses import dataclass

from bridgehead.kafka_wire.schema import BYTES, INT16, wire


@dataclass(slots=True)
class EnvelopeRequest:
    """The request."""

    request_data: bytes = wire(BYTES)
    request_principal: bytes | None = wire(BYTES, nullable="0+")
    client_host_address: bytes = wire(BYTES)


@dataclass(slots=True)
class EnvelopeResponse:
    """The response."""

    response_data: bytes | None = wire(BYTES, nullable="0+", default=None)
    error_code: int = wire(INT16)
