"""Delegation tokens: owner, lifetime and HMAC (KIP-48).

The HMAC of a token is its password. It is derived from the token id and
`delegation.token.secret.key`, is never stored, and must not appear in any log, event, outcome or
error. Without that key, delegation tokens are disabled.
"""

from __future__ import annotations

import hmac
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from cluster_model.principal import ANONYMOUS, KafkaPrincipal

_HASH: Final = "sha512"
_LONG_SIGN: Final = 2**63


@dataclass(frozen=True, slots=True)
class DelegationToken:
    """One token. Times are milliseconds since 1970, as Kafka stores them."""

    token_id: str  # a UUID in URL-safe base64, 22 characters; clients log in with it as user name
    owner: KafkaPrincipal  # the principal of a client that logs in with it
    requester: KafkaPrincipal  # who requested it; usually the owner
    renewers: tuple[KafkaPrincipal, ...]  # may renew and expire it, besides the owner
    issue_ms: int
    expiry_ms: int
    max_ms: int  # the latest expiry that a renewal can set

    def is_expired(self, now_ms: int) -> bool:
        """Return whether the token has expired; the controller removes such tokens periodically."""
        return self.max_ms < now_ms or self.expiry_ms < now_ms

    def may_be_changed_by(self, principal: KafkaPrincipal) -> bool:
        """Return whether a principal may renew or expire the token: the owner or a renewer."""
        return principal == self.owner or principal in self.renewers

    @property
    def seen_by(self) -> tuple[KafkaPrincipal, ...]:
        """The principals that may see the token without further authorization."""
        return (self.owner, self.requester, *self.renewers)


def can_request_tokens(security_protocol: str, principal: KafkaPrincipal) -> bool:
    """Return whether the connection is authenticated by other means than a token."""
    if principal.token_authenticated or security_protocol == "PLAINTEXT":
        return False
    return security_protocol != "SSL" or principal != ANONYMOUS


def java_long(number: int) -> int:
    """Return a number as a 64-bit integer with Java's overflow."""
    return (number + _LONG_SIGN) % (2 * _LONG_SIGN) - _LONG_SIGN


class TokenSecret:
    """`delegation.token.secret.key`, the same on all brokers. Its repr hides the key."""

    __slots__ = ("_key",)

    def __init__(self, key: str) -> None:
        """`key` must not be empty."""
        self._key = key.encode()

    def hmac(self, token_id: str) -> bytes:
        """Return the HMAC of a token, 64 bytes."""
        return hmac.digest(self._key, token_id.encode(), _HASH)


class TokenIndex:
    """Finds tokens by HMAC, with a cache of the computed HMACs."""

    def __init__(self, secret: TokenSecret) -> None:
        self._secret = secret
        self._ids: dict[bytes, str] = {}
        self._seen: Mapping[str, DelegationToken] | None = None

    def find(
        self, hmac_bytes: bytes, tokens: Mapping[str, DelegationToken]
    ) -> DelegationToken | None:
        """Return the token with this HMAC. `tokens` is an immutable map from token id to token."""
        cached = self._ids.get(hmac_bytes)
        if cached is not None and cached in tokens:
            return tokens[cached]
        if self._seen is not tokens:
            hmacs = {token_id: hmac for hmac, token_id in self._ids.items()}
            self._ids = {hmacs.get(token) or self._secret.hmac(token): token for token in tokens}
            self._seen = tokens
        match = self._ids.get(hmac_bytes)
        return None if match is None else tokens[match]
