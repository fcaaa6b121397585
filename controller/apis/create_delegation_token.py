"""CreateDelegationToken, key 38: issues a token (KIP-48, KIP-373).

Only the response holds the HMAC. The outcome holds the token's id and times, so that the next
controller returns the same response to the resent request (docs/adr/0003).
"""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Final, Self

from bridgehead.kafka_wire.api_key import ApiKey
from bridgehead.kafka_wire.errors import ErrorCode
from bridgehead.kafka_wire.messages.create_delegation_token import (
    CreateDelegationTokenRequest,
    CreateDelegationTokenResponse,
)
from cluster_model.delegation_tokens import (
    DelegationToken,
    TokenSecret,
    can_request_tokens,
    java_long,
)
from cluster_model.image import MetadataImage
from cluster_model.principal import KafkaPrincipal
from cluster_model.records import TokenRecord
from cluster_model.znodes.layout import encode_uuid
from controller.apis.base import (
    AdminApi,
    ApiSettings,
    Decided,
    Decision,
    Outcome,
    RandomSource,
    RequestContext,
    Results,
)

_NO_TIMES: Final = (-1, -1, -1)


@dataclass(frozen=True, slots=True)
class CreateDelegationToken(AdminApi):
    """Decides CreateDelegationToken requests. `secret` is None if tokens are disabled."""

    secret: TokenSecret | None
    max_lifetime_ms: int
    expiry_time_ms: int
    api_key: ClassVar[ApiKey] = ApiKey.CREATE_DELEGATION_TOKEN

    @classmethod
    def build(cls, settings: ApiSettings) -> Self:
        return cls(
            settings.token_secret,
            max_lifetime_ms=settings.config.long("delegation.token.max.lifetime.ms"),
            expiry_time_ms=settings.config.long("delegation.token.expiry.time.ms"),
        )

    def decide(
        self,
        context: RequestContext,
        request: CreateDelegationTokenRequest,
        image: MetadataImage,
        committed: Mapping[str, Outcome],
    ) -> Decision:
        """See AdminApi.decide. The element is the new token's id; after an error, the owner."""
        if committed:
            return Decision([])
        owner = _owner(context, request)
        error = self._error(context, request, owner)
        if error is not None:
            return Decision([Decided(str(owner), Outcome(error))])
        token = self._token(context, request, owner)
        times = (token.issue_ms, token.expiry_ms, token.max_ms)
        outcome = Outcome(ErrorCode.NONE, numbers=times)
        return Decision([Decided(token.token_id, outcome, (TokenRecord(token),))])

    def _error(
        self,
        context: RequestContext,
        request: CreateDelegationTokenRequest,
        owner: KafkaPrincipal,
    ) -> ErrorCode | None:
        """Make Kafka's checks in Kafka's order (docs/kafka/delegation-tokens.md#creating)."""
        if request.owner_principal_name and request.owner_principal_type is None:
            return ErrorCode.UNKNOWN_SERVER_ERROR  # Kafka fails on a principal without a type.
        if not can_request_tokens(context.client.security_protocol, context.client.principal):
            return ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED
        if owner != context.client.principal and not context.authorize(
            "CREATE_TOKENS", "USER", str(owner)
        ):
            return ErrorCode.DELEGATION_TOKEN_AUTHORIZATION_FAILED
        if any(renewer.principal_type != "User" for renewer in request.renewers):
            return ErrorCode.INVALID_PRINCIPAL_TYPE
        return None if self.secret else ErrorCode.DELEGATION_TOKEN_AUTH_DISABLED

    def _token(
        self,
        context: RequestContext,
        request: CreateDelegationTokenRequest,
        owner: KafkaPrincipal,
    ) -> DelegationToken:
        requested_ms, now_ms = request.max_lifetime_ms, context.now_ms
        lifetime_ms = self.max_lifetime_ms
        if requested_ms > 0:
            lifetime_ms = min(requested_ms, lifetime_ms)
        max_ms = java_long(now_ms + lifetime_ms)
        renewers = (KafkaPrincipal(r.principal_type, r.principal_name) for r in request.renewers)
        return DelegationToken(
            token_id=_new_token_id(context.random),
            owner=KafkaPrincipal(owner.type, owner.name),
            requester=KafkaPrincipal(context.client.principal.type, context.client.principal.name),
            renewers=tuple(renewers),
            issue_ms=now_ms,
            expiry_ms=min(max_ms, java_long(now_ms + self.expiry_time_ms)),
            max_ms=max_ms,
        )

    def response(
        self, context: RequestContext, request: CreateDelegationTokenRequest, results: Results
    ) -> Any:
        """See AdminApi.response. Reads only the outcome: the token may already be removed."""
        ((element, outcome),) = results.outcomes.items()
        error = outcome.error
        if outcome.succeeded and self.secret is None:
            # The previous controller had a secret and issued the token; this node has no secret.
            error = ErrorCode.DELEGATION_TOKEN_AUTH_DISABLED
        if error is ErrorCode.UNKNOWN_SERVER_ERROR:
            return self.error_response(request, context.api_version, error, None)
        succeeded = error is ErrorCode.NONE
        issue_ms, expiry_ms, max_ms = outcome.numbers if succeeded else _NO_TIMES
        owner = _owner(context, request)
        return CreateDelegationTokenResponse(
            error_code=error,
            principal_type=owner.type,
            principal_name=owner.name,
            token_requester_principal_type=context.client.principal.type,
            token_requester_principal_name=context.client.principal.name,
            issue_timestamp_ms=issue_ms,
            expiry_timestamp_ms=expiry_ms,
            max_timestamp_ms=max_ms,
            token_id=element if succeeded else "",
            hmac=self.secret.hmac(element) if succeeded and self.secret else b"",
        )


def _owner(context: RequestContext, request: CreateDelegationTokenRequest) -> KafkaPrincipal:
    """Return the requested owner; if the request names no owner, the client."""
    if not request.owner_principal_name:
        return context.client.principal
    return KafkaPrincipal(request.owner_principal_type or "", request.owner_principal_name)


def _new_token_id(random: RandomSource) -> str:
    return encode_uuid(uuid.UUID(bytes=random.randbytes(16), version=4).bytes)
