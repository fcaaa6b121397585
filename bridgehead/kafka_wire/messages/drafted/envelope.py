"""Envelope, key 58, version 0 of KIP-590's draft: six fields. Flexible.

Header and ApiMessage are bytes, since a broker relays them unparsed. Between our brokers Envelopes
use a gRPC channel (proto/envelope.proto) with these six fields and more.
"""

from __future__ import annotations

from dataclasses import dataclass

from bridgehead.kafka_wire.schema import BYTES, INT16, STRING, wire


@dataclass(slots=True)
class EnvelopeRequest:
    """The request."""

    request_header: bytes = wire(BYTES)
    request_data: bytes = wire(BYTES)
    principal_info: bytes = wire(BYTES)
    client_host_ip: str = wire(STRING, json="clientHostIP")
    listener_name: str = wire(STRING)
    security_protocol: str = wire(STRING)


@dataclass(slots=True)
class EnvelopeResponse:
    """The response."""

    response_header: bytes = wire(BYTES)
    response_data: bytes = wire(BYTES)
    error_code: int = wire(INT16)
