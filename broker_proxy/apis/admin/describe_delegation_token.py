"""DescribeDelegationToken, key 41: answered by every broker from its cache.

The response includes HMACs. Tokens that the client may not describe are omitted
(docs/kafka/delegation-tokens.md#describing).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from bridgehead.kafka_wire.api_key import ApiKey
from bridgehead.kafka_wire.errors import ApiError, ErrorCode
from bridgehead.kafka_wire.messages.describe_delegation_token import (
    DescribedDelegationToken,
    DescribedDelegationTokenRenewer,
    DescribeDelegationTokenRequest,
    DescribeDelegationTokenResponse,
)
from bridgehead.slices import sliced
from broker_proxy.client_request import AuthorizeFor, ClientRequest
from broker_proxy.metadata.token_cache import TokenCache
from cluster_model.acls.authorization import Authorize
from cluster_model.delegation_tokens import DelegationToken, can_request_tokens
from cluster_model.principal import KafkaPrincipal


@dataclass(frozen=True, slots=True)
class DescribeDelegationToken:
    """Answers DescribeDelegationToken requests."""

    cache: TokenCache
    authorize_for: AuthorizeFor
    api_key: ClassVar[ApiKey] = ApiKey.DESCRIBE_DELEGATION_TOKEN

    async def handle(self, request: ClientRequest, message: DescribeDelegationTokenRequest) -> Any:
        """Return the tokens that the client may see.

        If the request names owners, return only tokens that one of them owns, requested or may
        renew.
        """
        client = request.client
        if not can_request_tokens(client.security_protocol, client.principal):
            raise ApiError(ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED)
        secret = self.cache.secret
        if secret is None:
            raise ApiError(ErrorCode.DELEGATION_TOKEN_AUTH_DISABLED)
        owners = None
        if message.owners is not None:
            owners = {
                KafkaPrincipal(o.principal_type, o.principal_name)
                async for o in sliced(message.owners)
            }
        authorize = self.authorize_for(request)
        tokens = [
            _described(token, secret.hmac(token.token_id))
            async for token in sliced(tuple(self.cache.tokens.values()))
            if (owners is None or not owners.isdisjoint(token.seen_by))
            and _may_see(token, client.principal, authorize)
        ]
        return DescribeDelegationTokenResponse(error_code=ErrorCode.NONE, tokens=tokens)


def _may_see(token: DelegationToken, principal: KafkaPrincipal, authorize: Authorize) -> bool:
    return (
        principal in token.seen_by
        or authorize("DESCRIBE", "DELEGATION_TOKEN", token.token_id)
        or authorize("DESCRIBE_TOKENS", "USER", str(token.owner))
    )


def _described(token: DelegationToken, hmac: bytes) -> DescribedDelegationToken:
    return DescribedDelegationToken(
        principal_type=token.owner.type,
        principal_name=token.owner.name,
        token_requester_principal_type=token.requester.type,
        token_requester_principal_name=token.requester.name,
        issue_timestamp=token.issue_ms,
        expiry_timestamp=token.expiry_ms,
        max_timestamp=token.max_ms,
        token_id=token.token_id,
        hmac=hmac,
        renewers=[DescribedDelegationTokenRenewer(r.type, r.name) for r in token.renewers],
    )
