"""SaslHandshake, key 17, versions 0 to 1; never flexible.

Version notes:
    1: Same fields as 0.
"""

from __future__ import annotations

from dataclasses import dataclass

from bridgehead.kafka_wire.schema import INT16, STRING, Array, wire


@dataclass(slots=True)
class SaslHandshakeRequest:
    """The request."""

    mechanism: str = wire(STRING)


@dataclass(slots=True)
class SaslHandshakeResponse:
    """The response."""

    error_code: int = wire(INT16)
    mechanisms: list[str] = wire(Array(STRING))
