"""Delegation tokens (KIP-48, KIP-373). Principals are texts such as `User:alice`."""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING, Any, NamedTuple

from bridgehead.admin.errors import InvalidCallError
from bridgehead.admin.requests import Attempt, BrokerResponse, Plan, Request, one
from bridgehead.kafka_wire.api_key import ApiKey

if TYPE_CHECKING:
    from bridgehead.kafka_wire.messages.drafted.create_delegation_token import (
        CreateDelegationTokenRequest,
    )


class DelegationToken(NamedTuple):
    """A token. `hmac` is its secret: a client that knows it can log in as the token's owner.

    Times are milliseconds since 1970. `requester` is None if the broker does not have KIP-373.
    """

    token_id: str
    hmac: bytes
    owner: str
    requester: str | None
    renewers: list[str]
    issue_timestamp_ms: int
    expiry_timestamp_ms: int
    max_timestamp_ms: int

    def __repr__(self) -> str:
        return f"DelegationToken({self.token_id!r}, owner={self.owner!r})"


def create_delegation_token(
    renewers: Collection[str] = (), owner: str | None = None, max_lifetime_ms: int = -1
) -> Plan[DelegationToken]:
    """Create a token for the client's principal or another owner (KIP-48, KIP-373).

    A lifetime of -1 means the broker's maximum.

    The response does not name the renewers. As in Kafka's client, the result has the renewers of
    the request.

    Raises:
        KafkaError: DELEGATION_TOKEN_AUTH_DISABLED if the brokers have no secret key,
            DELEGATION_TOKEN_REQUEST_NOT_ALLOWED if the listener is not secured.
    """
    from bridgehead.kafka_wire.messages.create_delegation_token import CreatableRenewers
    from bridgehead.kafka_wire.messages.drafted.create_delegation_token import (
        CreateDelegationTokenRequest,
    )

    kind, name = (None, None) if owner is None else _principal(owner)
    named = [CreatableRenewers(*_principal(renewer)) for renewer in renewers]

    def build(attempt: Attempt) -> CreateDelegationTokenRequest:
        return CreateDelegationTokenRequest(kind, name, named, max_lifetime_ms)

    # An owner needs the dialect `shipped`: KIP-590's draft of version 3 has no field for an owner.
    response = yield from one(
        Request(ApiKey.CREATE_DELEGATION_TOKEN, build)
        if owner is None
        else Request(ApiKey.CREATE_DELEGATION_TOKEN, build, None, 3, None, "shipped", "an owner")
    )
    message = response.message
    response.check(message.error_code)
    return DelegationToken(
        message.token_id,
        message.hmac,
        f"{message.principal_type}:{message.principal_name}",
        _requester(message),
        list(renewers),
        message.issue_timestamp_ms,
        message.expiry_timestamp_ms,
        message.max_timestamp_ms,
    )


def renew_delegation_token(hmac: bytes, renew_period_ms: int = -1) -> Plan[int]:
    """Renew a token; return its new expiry time in milliseconds since 1970.

    A period of -1 means the broker's default.
    """
    from bridgehead.kafka_wire.messages.renew_delegation_token import RenewDelegationTokenRequest

    message = RenewDelegationTokenRequest(hmac, renew_period_ms)
    response = yield from one(Request(ApiKey.RENEW_DELEGATION_TOKEN, lambda _: message))
    return _expiry(response)


def expire_delegation_token(hmac: bytes, expiry_time_period_ms: int = -1) -> Plan[int]:
    """Make a token expire after a period; return its new expiry time in milliseconds since 1970.

    A negative period deletes the token immediately.
    """
    from bridgehead.kafka_wire.messages.expire_delegation_token import ExpireDelegationTokenRequest

    message = ExpireDelegationTokenRequest(hmac, expiry_time_period_ms)
    response = yield from one(Request(ApiKey.EXPIRE_DELEGATION_TOKEN, lambda _: message))
    return _expiry(response)


def describe_delegation_tokens(
    owners: Collection[str] | None = None,
) -> Plan[list[DelegationToken]]:
    """Return the tokens that one of these principals owns, requested or may renew.

    None means the tokens of all principals. Tokens that the client may not describe are omitted.
    """
    from bridgehead.kafka_wire.messages.describe_delegation_token import (
        DescribeDelegationTokenOwner,
        DescribeDelegationTokenRequest,
    )

    wanted = None
    if owners is not None:
        wanted = [DescribeDelegationTokenOwner(*_principal(owner)) for owner in owners]
    message = DescribeDelegationTokenRequest(wanted)
    response = yield from one(Request(ApiKey.DESCRIBE_DELEGATION_TOKEN, lambda _: message))
    response.check(response.message.error_code)
    return [
        DelegationToken(
            token.token_id,
            token.hmac,
            f"{token.principal_type}:{token.principal_name}",
            _requester(token),
            [f"{it.principal_type}:{it.principal_name}" for it in token.renewers],
            token.issue_timestamp,
            token.expiry_timestamp,
            token.max_timestamp,
        )
        for token in response.message.tokens
    ]


def _principal(text: str) -> tuple[str, str]:
    kind, colon, name = text.partition(":")
    if not kind or not colon:
        raise InvalidCallError(f"{text!r} is not a principal: write TYPE:NAME, such as User:alice.")
    return kind, name


def _requester(message: Any) -> str | None:
    kind = message.token_requester_principal_type
    return f"{kind}:{message.token_requester_principal_name}" if kind else None


def _expiry(response: BrokerResponse) -> int:
    response.check(response.message.error_code)
    expiry: int = response.message.expiry_timestamp_ms
    return expiry
