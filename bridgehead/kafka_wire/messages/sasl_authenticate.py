"""SaslAuthenticate, key 36, versions 0 to 2; flexible from 2.

Version notes:
    1: The response adds `session_lifetime_ms`.
    2: First flexible version.
"""

from __future__ import annotations

from dataclasses import dataclass

from bridgehead.kafka_wire.schema import BYTES, INT16, INT64, STRING, wire


@dataclass(slots=True)
class SaslAuthenticateRequest:
    """The request."""

    auth_bytes: bytes = wire(BYTES)


@dataclass(slots=True)
class SaslAuthenticateResponse:
    """The response."""

    error_code: int = wire(INT16)
    error_message: str | None = wire(STRING, nullable="0+")
    auth_bytes: bytes = wire(BYTES)
    session_lifetime_ms: int = wire(INT64, versions="1+")
