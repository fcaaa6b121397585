"""Delegation tokens as values: whose they are, how long they live, what proves them (KIP-48).

A token's HMAC is its password. It is made of the token's id and `delegation.token.secret.key`, is
stored nowhere, and may reach no log, event, outcome or error; without that key there are no
tokens.
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

    token_id: str  # a UUID in URL-safe base64, 22 characters; the user name of a login
    owner: KafkaPrincipal  # who a client that logs in with it is
    requester: KafkaPrincipal  # who asked for it; mostly the owner
    renewers: tuple[KafkaPrincipal, ...]  # who else may renew and expire it
    issue_ms: int
    expiry_ms: int
    max_ms: int  # renewals reach no further

    def is_expired(self, now_ms: int) -> bool:
        """Expired tokens stay until the controller removes them, an hour later at most."""
        return self.max_ms < now_ms or self.expiry_ms < now_ms

    def may_be_changed_by(self, principal: KafkaPrincipal) -> bool:
        """Renewed and expired: who merely asked for it for somebody else may not."""
        return principal == self.owner or principal in self.renewers

    def concerns(self, principal: KafkaPrincipal) -> bool:
        """Tell whether somebody may see it without any further right."""
        return principal == self.requester or self.may_be_changed_by(principal)


def may_ask_for_tokens(security_protocol: str, principal: KafkaPrincipal) -> bool:
    """A token may be asked for where the client proved who it is, and not with a token."""
    if principal.token_authenticated or security_protocol == "PLAINTEXT":
        return False
    return security_protocol != "SSL" or principal != ANONYMOUS


def java_long(number: int) -> int:
    """Return a sum as Java's long holds it: beyond 64 bits it goes on at the other end."""
    return (number + _LONG_SIGN) % (2 * _LONG_SIGN) - _LONG_SIGN


class TokenSecret:
    """`delegation.token.secret.key`, the same on all brokers. Shows in no repr."""

    __slots__ = ("_key",)

    def __init__(self, key: str) -> None:
        """`key` is as configured; it must not be empty."""
        self._key = key.encode()

    def hmac(self, token_id: str) -> bytes:
        """Return what proves a token, 64 bytes."""
        return hmac.digest(self._key, token_id.encode(), _HASH)


class TokenIndex:
    """Finds tokens by HMAC. It only remembers: the same question has always the same answer."""

    def __init__(self, secret: TokenSecret) -> None:
        self._secret = secret
        self._ids: dict[bytes, str] = {}
        self._seen: Mapping[str, DelegationToken] | None = None

    def find(self, proof: bytes, tokens: Mapping[str, DelegationToken]) -> DelegationToken | None:
        """Return the token among `tokens` (by id, unchanging) that `proof` is the HMAC of."""
        known = self._ids.get(proof)
        if known is not None and known in tokens:
            return tokens[known]
        if self._seen is not tokens:
            made = {token_id: made for made, token_id in self._ids.items()}
            self._ids = {made.get(each) or self._secret.hmac(each): each for each in tokens}
            self._seen = tokens
        found = self._ids.get(proof)
        return None if found is None else tokens[found]
