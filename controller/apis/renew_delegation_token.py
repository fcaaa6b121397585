"""RenewDelegationToken, key 39: sets the expiry of a token, at most to its maximum (KIP-48)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Self

from bridgehead.kafka_wire.api_key import ApiKey
from bridgehead.kafka_wire.messages.renew_delegation_token import (
    RenewDelegationTokenRequest,
    RenewDelegationTokenResponse,
)
from cluster_model.delegation_tokens import DelegationToken
from controller.apis.base import (
    ApiSettings,
    Decision,
)
from controller.apis.token_changes import TokenChangeApi, TokenFinder, new_expiry


@dataclass(frozen=True, slots=True)
class RenewDelegationToken(TokenChangeApi):
    """Decides RenewDelegationToken requests. `expiry_time_ms`: the default period."""

    expiry_time_ms: int
    api_key: ClassVar[ApiKey] = ApiKey.RENEW_DELEGATION_TOKEN
    message: ClassVar[type] = RenewDelegationTokenResponse

    @classmethod
    def build(cls, settings: ApiSettings) -> Self:
        period_ms = settings.config.long("delegation.token.expiry.time.ms")
        return cls(TokenFinder(settings.token_secret), period_ms)

    def change(
        self, token: DelegationToken, request: RenewDelegationTokenRequest, now_ms: int
    ) -> Decision:
        """See TokenChangeApi.change. A negative period means the default; 0 expires the token."""
        period_ms = request.renew_period_ms
        return new_expiry(token, now_ms, period_ms if period_ms >= 0 else self.expiry_time_ms)
