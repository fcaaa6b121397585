"""CreateDelegationToken v3 of KIP-590: the body of v2, without KIP-373's owner."""

from __future__ import annotations

from dataclasses import dataclass

from bridgehead.kafka_wire.messages import create_delegation_token as shipped
from bridgehead.kafka_wire.schema import STRING, wire


@dataclass(slots=True)
class CreateDelegationTokenRequest(shipped.CreateDelegationTokenRequest):
    """The request."""

    owner_principal_type: str | None = wire(STRING, versions="4+", nullable="4+")
    owner_principal_name: str | None = wire(STRING, versions="4+", nullable="4+")


@dataclass(slots=True)
class CreateDelegationTokenResponse(shipped.CreateDelegationTokenResponse):
    """The response."""

    token_requester_principal_type: str = wire(STRING, versions="4+")
    token_requester_principal_name: str = wire(STRING, versions="4+")
