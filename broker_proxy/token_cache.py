"""Delegation tokens as this broker knows them: for logins (`tokenauth`) and for describing them.

Fed by ZooKeeper's change notifications; in office the controller's own image is newer and counts.
"""

from __future__ import annotations

import base64
from collections.abc import Callable, Mapping
from typing import Final

from cluster_model.delegation_tokens import DelegationToken, TokenSecret
from cluster_model.scram import ITERATIONS_MIN, ScramCredential, derive_credential

_SALT_BYTES: Final = 32
Tokens = Mapping[str, DelegationToken]  # by token id


class TokenCache:
    """Every token. Reads and changes happen on one thread."""

    def __init__(
        self,
        secret: TokenSecret | None,
        *,
        new_salt: Callable[[int], bytes],
        in_office: Callable[[], Tokens | None] = lambda: None,
        seen: Callable[[str, DelegationToken | None], None] = lambda _id, _token: None,
    ) -> None:
        """`new_salt` gives that many random bytes; `in_office` the controller's tokens, if here.

        `seen` hears of every token that was read again; None: it is gone.
        """
        self.secret = secret
        self._new_salt = new_salt
        self._in_office = in_office
        self._seen = seen
        self._learned: dict[str, DelegationToken] = {}
        # Made when a token first logs in: making one takes milliseconds, and most never log in.
        self._credentials: dict[tuple[str, int], ScramCredential] = {}

    @property
    def tokens(self) -> Tokens:
        """All tokens, those included that have expired and were not removed yet."""
        if self.secret is None:
            return {}
        newest = self._in_office()
        return self._learned if newest is None else newest

    def replace_all(self, tokens: Tokens) -> None:
        """Take over all tokens; forget every other."""
        self._learned = dict(tokens)
        self._credentials = {
            key: made for key, made in self._credentials.items() if key[0] in self._learned
        }

    def update(self, token_id: str, token: DelegationToken | None) -> None:
        """Take over one token; None: it is gone."""
        if token is None:
            self._learned.pop(token_id, None)
            for key in [key for key in self._credentials if key[0] == token_id]:
                del self._credentials[key]
        else:
            self._learned[token_id] = token
        self._seen(token_id, token)

    def scram_credential(self, token_id: str, mechanism: int) -> ScramCredential | None:
        """Return what a login with a token is checked against; the HMAC in base64 is its password.

        `mechanism` is Kafka's number, 1 or 2. Salts are each broker's own, as in Kafka.
        """
        if self.secret is None or token_id not in self.tokens:
            return None
        made = self._credentials.get((token_id, mechanism))
        if made is None:
            password = base64.b64encode(self.secret.hmac(token_id)).decode()
            salt = self._new_salt(_SALT_BYTES)
            made = derive_credential(mechanism, password, salt, ITERATIONS_MIN)
            self._credentials[token_id, mechanism] = made
        return made

    def owner(self, token_id: str) -> str | None:
        """Return the name of a token's owner: who a connection that logs in with it is."""
        token = self.tokens.get(token_id)
        return None if token is None else token.owner.name

    def expires_at_ms(self, token_id: str) -> int | None:
        """Return when a token expires unless it is renewed."""
        token = self.tokens.get(token_id)
        return None if token is None else token.expiry_ms
