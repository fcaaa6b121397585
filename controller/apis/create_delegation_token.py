"""CreateDelegationToken, key 38: a token is issued (KIP-48, KIP-373).

The HMAC is in the answer alone. The outcome holds the token's id and times, so that the next
controller gives the same answer to the same request (docs/adr/0003).
"""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Final

from bridgehead.kafka_wire.error_responses import error_response
from bridgehead.kafka_wire.errors import ErrorCode
from bridgehead.kafka_wire.messages.create_delegation_token import (
    CreateDelegationTokenRequest,
    CreateDelegationTokenResponse,
)
from cluster_model.delegation_tokens import (
    DelegationToken,
    TokenSecret,
    java_long,
    may_ask_for_tokens,
)
from cluster_model.image import MetadataImage
from cluster_model.principal import KafkaPrincipal
from cluster_model.records import TokenRecord
from cluster_model.znodes import encode_uuid
from controller.apis.base import Decided, Decision, Outcome, RandomSource, RequestContext

_NO_TIMES: Final = (-1, -1, -1)


@dataclass(frozen=True, slots=True)
class CreateDelegationToken:
    """Issues tokens. `secret` is None where there are none."""

    secret: TokenSecret | None
    max_lifetime_ms: int
    expiry_time_ms: int
    api_key: ClassVar[int] = 38

    def decide(
        self,
        context: RequestContext,
        request: CreateDelegationTokenRequest,
        image: MetadataImage,
        settled: Mapping[str, Outcome],
    ) -> Decision:
        """See AdminApi.decide. The element is the new token's id; of a refusal, its owner."""
        if settled:
            return Decision([])
        owner = _owner(context, request)
        refusal = self._refusal(context, request, owner)
        if refusal is not None:
            return Decision([Decided(str(owner), Outcome(refusal))])
        token = self._token(context, request, owner)
        times = (token.issue_ms, token.expiry_ms, token.max_ms)
        outcome = Outcome(ErrorCode.NONE, times_ms=times)
        return Decision([Decided(token.token_id, outcome, (TokenRecord(token),))])

    def _refusal(
        self,
        context: RequestContext,
        request: CreateDelegationTokenRequest,
        owner: KafkaPrincipal,
    ) -> ErrorCode | None:
        """Kafka's checks in Kafka's order (kafka-semantics 3.11)."""
        if request.owner_principal_name and request.owner_principal_type is None:
            return ErrorCode.UNKNOWN_SERVER_ERROR  # Kafka fails on making such a principal.
        if not may_ask_for_tokens(context.security_protocol, context.principal):
            return ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED
        if owner != context.principal and not context.authorize(
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
        asked, now_ms = request.max_lifetime_ms, context.now_ms
        lifetime_ms = min(asked, self.max_lifetime_ms) if asked > 0 else self.max_lifetime_ms
        max_ms = java_long(now_ms + lifetime_ms)
        renewers = (KafkaPrincipal(r.principal_type, r.principal_name) for r in request.renewers)
        return DelegationToken(
            token_id=_new_token_id(context.random),
            owner=KafkaPrincipal(owner.type, owner.name),
            requester=KafkaPrincipal(context.principal.type, context.principal.name),
            renewers=tuple(renewers),
            issue_ms=now_ms,
            expiry_ms=min(max_ms, java_long(now_ms + self.expiry_time_ms)),
            max_ms=max_ms,
        )

    def conflict(self, element: str) -> Outcome:
        """See AdminApi.conflict."""
        return Outcome(ErrorCode.UNKNOWN_SERVER_ERROR)

    def answer(
        self,
        context: RequestContext,
        request: CreateDelegationTokenRequest,
        outcomes: Mapping[str, Outcome],
        image: MetadataImage,
        unfinished: frozenset[str],
    ) -> Any:
        """See AdminApi.answer: made of the outcome alone; the token may be gone by now."""
        ((element, outcome),) = outcomes.items()
        error = outcome.error
        if outcome.succeeded and self.secret is None:
            error = ErrorCode.DELEGATION_TOKEN_AUTH_DISABLED  # Issued by a node that has the key.
        if error is ErrorCode.UNKNOWN_SERVER_ERROR:
            return self.refuse(request, context.api_version, error, None)
        succeeded = error is ErrorCode.NONE
        issue_ms, expiry_ms, max_ms = outcome.times_ms if succeeded else _NO_TIMES
        owner = _owner(context, request)
        return CreateDelegationTokenResponse(
            error_code=error,
            principal_type=owner.type,
            principal_name=owner.name,
            token_requester_principal_type=context.principal.type,
            token_requester_principal_name=context.principal.name,
            issue_timestamp_ms=issue_ms,
            expiry_timestamp_ms=expiry_ms,
            max_timestamp_ms=max_ms,
            token_id=element if succeeded else "",
            hmac=self.secret.hmac(element) if succeeded and self.secret else b"",
        )

    def refuse(
        self,
        request: CreateDelegationTokenRequest,
        version: int,
        error: ErrorCode,
        message: str | None,
    ) -> Any:
        """See AdminApi.refuse."""
        return error_response(self.api_key, request, version, error, message)


def _owner(context: RequestContext, request: CreateDelegationTokenRequest) -> KafkaPrincipal:
    """An owner without a name is none: then it is whoever asks."""
    if not request.owner_principal_name:
        return context.principal
    return KafkaPrincipal(request.owner_principal_type or "", request.owner_principal_name)


def _new_token_id(random: RandomSource) -> str:
    return encode_uuid(uuid.UUID(bytes=random.randbytes(16), version=4).bytes)
