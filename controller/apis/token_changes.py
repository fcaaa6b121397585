"""What RenewDelegationToken and ExpireDelegationToken have in common.

Both name a token by its HMAC, which is its password: it stays in the request. The element is the
token's id, and the outcome holds the time that was told.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from bridgehead.kafka_wire.errors import ErrorCode
from cluster_model.delegation_tokens import (
    DelegationToken,
    TokenIndex,
    TokenSecret,
    may_ask_for_tokens,
)
from cluster_model.image import MetadataImage
from controller.apis.base import Decided, Decision, Outcome, RequestContext

# The element of a request that names no token that is there.
NOTHING_FOUND: Final = "nothing"
GONE: Final = Outcome(ErrorCode.DELEGATION_TOKEN_NOT_FOUND)
_NO_TIME: Final = -1


class TokenFinder:
    """Finds the token that is meant, and says why it may not be changed by whoever asks."""

    def __init__(self, secret: TokenSecret | None) -> None:
        """`secret` is None where there are no tokens."""
        self._index = TokenIndex(secret) if secret else None

    def find(
        self, context: RequestContext, proof: bytes, image: MetadataImage
    ) -> DelegationToken | Decision:
        """Return the token, or the refusal. Kafka's checks in Kafka's order."""
        if not may_ask_for_tokens(context.security_protocol, context.principal):
            return _refused(ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED)
        if self._index is None:
            return _refused(ErrorCode.DELEGATION_TOKEN_AUTH_DISABLED)
        token = self._index.find(proof, image.tokens)
        if token is None:
            return _refused(ErrorCode.DELEGATION_TOKEN_NOT_FOUND)
        if not token.may_be_changed_by(context.principal):
            return refused_change(token, ErrorCode.DELEGATION_TOKEN_OWNER_MISMATCH)
        return token


def _refused(error: ErrorCode) -> Decision:
    return Decision([Decided(NOTHING_FOUND, Outcome(error))])


def refused_change(token: DelegationToken, error: ErrorCode) -> Decision:
    """Return the decision that leaves a token as it is."""
    return Decision([Decided(token.token_id, Outcome(error))])


def told(outcomes: Mapping[str, Outcome]) -> tuple[ErrorCode, int]:
    """Return what the answer says: the error, and until when the token lives."""
    (outcome,) = outcomes.values()
    return outcome.error, outcome.times_ms[0] if outcome.succeeded else _NO_TIME
