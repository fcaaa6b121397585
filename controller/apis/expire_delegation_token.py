"""ExpireDelegationToken, key 40: a token lives shorter, or is removed at once (KIP-48)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar

from bridgehead.kafka_wire.error_responses import error_response
from bridgehead.kafka_wire.errors import ErrorCode
from bridgehead.kafka_wire.messages.expire_delegation_token import (
    ExpireDelegationTokenRequest,
    ExpireDelegationTokenResponse,
)
from cluster_model.delegation_tokens import java_long
from cluster_model.image import MetadataImage
from cluster_model.records import Record, TokenRecord, TokenRemovalRecord
from controller.apis.base import Decided, Decision, Outcome, RequestContext
from controller.apis.token_changes import GONE, TokenFinder, refused_change, told


@dataclass(frozen=True, slots=True)
class ExpireDelegationToken:
    """Expires tokens."""

    finder: TokenFinder
    api_key: ClassVar[int] = 40

    def decide(
        self,
        context: RequestContext,
        request: ExpireDelegationTokenRequest,
        image: MetadataImage,
        settled: Mapping[str, Outcome],
    ) -> Decision:
        """See AdminApi.decide. A negative period removes the token, expired or not."""
        if settled:
            return Decision([])
        token = self.finder.find(context, request.hmac, image)
        if isinstance(token, Decision):
            return token
        record: Record
        if request.expiry_time_period_ms < 0:
            expiry_ms, record = context.now_ms, TokenRemovalRecord(token.token_id)
        elif token.is_expired(context.now_ms):
            return refused_change(token, ErrorCode.DELEGATION_TOKEN_EXPIRED)
        else:
            until_ms = java_long(context.now_ms + request.expiry_time_period_ms)
            expiry_ms = min(token.max_ms, until_ms)
            record = TokenRecord(replace(token, expiry_ms=expiry_ms))
        outcome = Outcome(ErrorCode.NONE, times_ms=(expiry_ms,))
        return Decision([Decided(token.token_id, outcome, (record,))])

    def conflict(self, element: str) -> Outcome:
        """See AdminApi.conflict: somebody else has removed the token."""
        return GONE

    def answer(
        self,
        context: RequestContext,
        request: ExpireDelegationTokenRequest,
        outcomes: Mapping[str, Outcome],
        image: MetadataImage,
        unfinished: frozenset[str],
    ) -> Any:
        """See AdminApi.answer."""
        error, expiry_ms = told(outcomes)
        return ExpireDelegationTokenResponse(error_code=error, expiry_timestamp_ms=expiry_ms)

    def refuse(
        self,
        request: ExpireDelegationTokenRequest,
        version: int,
        error: ErrorCode,
        message: str | None,
    ) -> Any:
        """See AdminApi.refuse."""
        return error_response(self.api_key, request, version, error, message)
