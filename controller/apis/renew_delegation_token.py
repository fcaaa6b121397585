"""RenewDelegationToken, key 39: a token lives longer, never beyond its maximum (KIP-48)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar

from bridgehead.kafka_wire.error_responses import error_response
from bridgehead.kafka_wire.errors import ErrorCode
from bridgehead.kafka_wire.messages.renew_delegation_token import (
    RenewDelegationTokenRequest,
    RenewDelegationTokenResponse,
)
from cluster_model.delegation_tokens import java_long
from cluster_model.image import MetadataImage
from cluster_model.records import TokenRecord
from controller.apis.base import Decided, Decision, Outcome, RequestContext
from controller.apis.token_changes import GONE, TokenFinder, refused_change, told


@dataclass(frozen=True, slots=True)
class RenewDelegationToken:
    """Renews tokens."""

    finder: TokenFinder
    expiry_time_ms: int
    api_key: ClassVar[int] = 39

    def decide(
        self,
        context: RequestContext,
        request: RenewDelegationTokenRequest,
        image: MetadataImage,
        settled: Mapping[str, Outcome],
    ) -> Decision:
        """See AdminApi.decide. A period of 0 is obeyed: expired from now on."""
        if settled:
            return Decision([])
        token = self.finder.find(context, request.hmac, image)
        if isinstance(token, Decision):
            return token
        if token.is_expired(context.now_ms):
            return refused_change(token, ErrorCode.DELEGATION_TOKEN_EXPIRED)
        period_ms = request.renew_period_ms
        until_ms = context.now_ms + (period_ms if period_ms >= 0 else self.expiry_time_ms)
        expiry_ms = min(token.max_ms, java_long(until_ms))
        outcome = Outcome(ErrorCode.NONE, times_ms=(expiry_ms,))
        record = TokenRecord(replace(token, expiry_ms=expiry_ms))
        return Decision([Decided(token.token_id, outcome, (record,))])

    def conflict(self, element: str) -> Outcome:
        """See AdminApi.conflict: somebody else has removed the token."""
        return GONE

    def answer(
        self,
        context: RequestContext,
        request: RenewDelegationTokenRequest,
        outcomes: Mapping[str, Outcome],
        image: MetadataImage,
        unfinished: frozenset[str],
    ) -> Any:
        """See AdminApi.answer."""
        error, expiry_ms = told(outcomes)
        return RenewDelegationTokenResponse(error_code=error, expiry_timestamp_ms=expiry_ms)

    def refuse(
        self,
        request: RenewDelegationTokenRequest,
        version: int,
        error: ErrorCode,
        message: str | None,
    ) -> Any:
        """See AdminApi.refuse."""
        return error_response(self.api_key, request, version, error, message)
