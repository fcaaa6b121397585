"""RenewDelegationToken, key 39, versions 0 to 2; flexible from 2.

Version notes:
    1: Same fields as 0.
    2: First flexible version.
"""

from __future__ import annotations

from dataclasses import dataclass

from bridgehead.kafka_wire.schema import BYTES, INT16, INT32, INT64, wire


@dataclass(slots=True)
class RenewDelegationTokenRequest:
    """The request."""

    hmac: bytes = wire(BYTES)
    renew_period_ms: int = wire(INT64)


@dataclass(slots=True)
class RenewDelegationTokenResponse:
    """The response."""

    error_code: int = wire(INT16)
    expiry_timestamp_ms: int = wire(INT64)
    throttle_time_ms: int = wire(INT32)
