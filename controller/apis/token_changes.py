"""RenewDelegationToken and ExpireDelegationToken.

Both requests name a token by its HMAC. The HMAC is the token's password, and is stored nowhere. The
element is the token's id; its outcome holds the new expiry time.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Final

from bridgehead.kafka_wire.errors import ErrorCode
from cluster_model.delegation_tokens import (
    DelegationToken,
    TokenIndex,
    TokenSecret,
    can_request_tokens,
    java_long,
)
from cluster_model.image import MetadataImage
from cluster_model.records import Record, TokenRecord, TokenRemovalRecord
from controller.apis.base import AdminApi, Decided, Decision, Outcome, RequestContext, Results

# The element of a request that is rejected before its token is found.
_NOTHING_FOUND: Final = "nothing"
_NOT_FOUND: Final = Outcome(ErrorCode.DELEGATION_TOKEN_NOT_FOUND)
_NO_TIME: Final = -1


class TokenFinder:
    """Finds the token that a request names and checks that the client may change it."""

    def __init__(self, secret: TokenSecret | None) -> None:
        """`secret` is None if tokens are disabled."""
        self._index = TokenIndex(secret) if secret else None

    def find(
        self, context: RequestContext, hmac: bytes, image: MetadataImage
    ) -> DelegationToken | Decision:
        """Make Kafka's checks in Kafka's order; return the token, or a decision with the error."""
        if not can_request_tokens(context.client.security_protocol, context.client.principal):
            return _nothing(Outcome(ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED))
        if self._index is None:
            return _nothing(Outcome(ErrorCode.DELEGATION_TOKEN_AUTH_DISABLED))
        token = self._index.find(hmac, image.tokens)
        if token is None:
            return _nothing(_NOT_FOUND)
        if not token.may_be_changed_by(context.client.principal):
            return rejected(token, ErrorCode.DELEGATION_TOKEN_OWNER_MISMATCH)
        return token


@dataclass(frozen=True, slots=True)
class TokenChangeApi(AdminApi):
    """The common part of RenewDelegationToken and ExpireDelegationToken."""

    finder: TokenFinder
    message: ClassVar[type]

    @abstractmethod
    def change(self, token: DelegationToken, request: Any, now_ms: int) -> Decision:
        """Decide how the token changes."""

    def decide(
        self,
        context: RequestContext,
        request: Any,
        image: MetadataImage,
        committed: Mapping[str, Outcome],
    ) -> Decision:
        if committed:
            return Decision([])
        token = self.finder.find(context, request.hmac, image)
        if isinstance(token, Decision):
            return token
        return self.change(token, request, context.now_ms)

    def conflict(self, element: str) -> Outcome:
        """See AdminApi.conflict: the token was removed."""
        return _NOT_FOUND

    def response(self, context: RequestContext, request: Any, results: Results) -> Any:
        (outcome,) = results.outcomes.values()
        expiry_ms = outcome.numbers[0] if outcome.succeeded else _NO_TIME
        return self.message(error_code=outcome.error, expiry_timestamp_ms=expiry_ms)


def new_expiry(token: DelegationToken, now_ms: int, period_ms: int) -> Decision:
    """Return the decision that changes a token's expiry, or rejects an expired token.

    The new expiry is `period_ms` from now, but no later than `token.max_ms`.
    """
    if token.is_expired(now_ms):
        return rejected(token, ErrorCode.DELEGATION_TOKEN_EXPIRED)
    expiry_ms = min(token.max_ms, java_long(now_ms + period_ms))
    return _changed(token, expiry_ms, TokenRecord(replace(token, expiry_ms=expiry_ms)))


def removal(token: DelegationToken, now_ms: int) -> Decision:
    """Return the decision that removes a token."""
    return _changed(token, now_ms, TokenRemovalRecord(token.token_id))


def rejected(token: DelegationToken, error: ErrorCode) -> Decision:
    """Return the decision that leaves a token unchanged."""
    return Decision([Decided(token.token_id, Outcome(error))])


def _changed(token: DelegationToken, expiry_ms: int, record: Record) -> Decision:
    outcome = Outcome(ErrorCode.NONE, numbers=(expiry_ms,))
    return Decision([Decided(token.token_id, outcome, (record,))])


def _nothing(outcome: Outcome) -> Decision:
    return Decision([Decided(_NOTHING_FOUND, outcome)])
