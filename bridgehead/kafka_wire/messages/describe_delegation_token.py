"""DescribeDelegationToken, key 41, versions 0 to 3; flexible from 2.

Version notes:
    1: Same fields as 0.
    2: First flexible version.
    3: The response adds `tokens.token_requester_principal_type`,
       `tokens.token_requester_principal_name`.
"""

from __future__ import annotations

from dataclasses import dataclass

from bridgehead.kafka_wire.schema import BYTES, INT16, INT32, INT64, STRING, Array, wire


@dataclass(slots=True)
class DescribeDelegationTokenOwner:
    """An element of `owners` of the request."""

    principal_type: str = wire(STRING)
    principal_name: str = wire(STRING)


@dataclass(slots=True)
class DescribeDelegationTokenRequest:
    """The request."""

    owners: list[DescribeDelegationTokenOwner] | None = wire(
        Array(DescribeDelegationTokenOwner), nullable="0+"
    )


@dataclass(slots=True)
class DescribedDelegationTokenRenewer:
    """An element of `tokens.renewers` of the response."""

    principal_type: str = wire(STRING)
    principal_name: str = wire(STRING)


@dataclass(slots=True)
class DescribedDelegationToken:
    """An element of `tokens` of the response."""

    principal_type: str = wire(STRING)
    principal_name: str = wire(STRING)
    token_requester_principal_type: str = wire(STRING, versions="3+")
    token_requester_principal_name: str = wire(STRING, versions="3+")
    issue_timestamp: int = wire(INT64)
    expiry_timestamp: int = wire(INT64)
    max_timestamp: int = wire(INT64)
    token_id: str = wire(STRING)
    hmac: bytes = wire(BYTES)
    renewers: list[DescribedDelegationTokenRenewer] = wire(Array(DescribedDelegationTokenRenewer))


@dataclass(slots=True)
class DescribeDelegationTokenResponse:
    """The response."""

    error_code: int = wire(INT16)
    tokens: list[DescribedDelegationToken] = wire(Array(DescribedDelegationToken))
    throttle_time_ms: int = wire(INT32)
