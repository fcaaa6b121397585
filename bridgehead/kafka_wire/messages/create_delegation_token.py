"""CreateDelegationToken, key 38, versions 0 to 3; flexible from 2.

Version notes:
    1: Same fields as 0.
    2: First flexible version.
    3: The request adds `owner_principal_type`, `owner_principal_name`. The response adds
       `token_requester_principal_type`, `token_requester_principal_name`.
"""

from __future__ import annotations

from dataclasses import dataclass

from bridgehead.kafka_wire.schema import BYTES, INT16, INT32, INT64, STRING, Array, wire


@dataclass(slots=True)
class CreatableRenewers:
    """An element of `renewers` of the request."""

    principal_type: str = wire(STRING)
    principal_name: str = wire(STRING)


@dataclass(slots=True)
class CreateDelegationTokenRequest:
    """The request."""

    owner_principal_type: str | None = wire(STRING, versions="3+", nullable="3+")
    owner_principal_name: str | None = wire(STRING, versions="3+", nullable="3+")
    renewers: list[CreatableRenewers] = wire(Array(CreatableRenewers))
    max_lifetime_ms: int = wire(INT64)


@dataclass(slots=True)
class CreateDelegationTokenResponse:
    """The response."""

    error_code: int = wire(INT16)
    principal_type: str = wire(STRING)
    principal_name: str = wire(STRING)
    token_requester_principal_type: str = wire(STRING, versions="3+")
    token_requester_principal_name: str = wire(STRING, versions="3+")
    issue_timestamp_ms: int = wire(INT64)
    expiry_timestamp_ms: int = wire(INT64)
    max_timestamp_ms: int = wire(INT64)
    token_id: str = wire(STRING)
    hmac: bytes = wire(BYTES)
    throttle_time_ms: int = wire(INT32)
