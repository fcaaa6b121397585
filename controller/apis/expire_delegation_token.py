"""ExpireDelegationToken, key 40: sets the expiry of a token, or removes the token (KIP-48)."""

from __future__ import annotations

from typing import ClassVar, Self

from bridgehead.kafka_wire.api_key import ApiKey
from bridgehead.kafka_wire.messages.expire_delegation_token import (
    ExpireDelegationTokenRequest,
    ExpireDelegationTokenResponse,
)
from cluster_model.delegation_tokens import DelegationToken
from controller.apis.base import (
    ApiSettings,
    Decision,
)
from controller.apis.token_changes import TokenChangeApi, TokenFinder, new_expiry, removal


class ExpireDelegationToken(TokenChangeApi):
    """Decides ExpireDelegationToken requests."""

    api_key: ClassVar[ApiKey] = ApiKey.EXPIRE_DELEGATION_TOKEN
    message: ClassVar[type] = ExpireDelegationTokenResponse

    @classmethod
    def build(cls, settings: ApiSettings) -> Self:
        return cls(TokenFinder(settings.token_secret))

    def change(
        self, token: DelegationToken, request: ExpireDelegationTokenRequest, now_ms: int
    ) -> Decision:
        """See TokenChangeApi.change. A negative period removes the token, even an expired one."""
        if request.expiry_time_period_ms < 0:
            return removal(token, now_ms)
        return new_expiry(token, now_ms, request.expiry_time_period_ms)
