"""This broker's delegation tokens, for DescribeDelegationToken and for logins with `tokenauth`.

ZooKeeper's change notifications keep the cache current. The active controller's own broker uses the
tokens of the controller's image instead, which are newer.
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
    """All delegation tokens. Used from one thread."""

    def __init__(
        self,
        secret: TokenSecret | None,
        *,
        new_salt: Callable[[int], bytes],
        active_tokens: Callable[[], Tokens | None] = lambda: None,
        seen: Callable[[str, DelegationToken | None], None] = lambda _id, _token: None,
    ) -> None:
        """`new_salt` returns the given number of random bytes.

        `active_tokens` returns the tokens of the active controller, or None if the controller in
        this process is not active. `seen` is called for each token that was read or has
        disappeared, with the token's id and the token, or None if it has disappeared.
        """
        self.secret = secret
        self._new_salt = new_salt
        self._active_tokens = active_tokens
        self._seen = seen
        self._learned: dict[str, DelegationToken] = {}
        # A credential is built at the first login with its token, because this takes milliseconds
        # and most tokens are never used to log in.
        self._credentials: dict[tuple[str, int], ScramCredential] = {}

    @property
    def tokens(self) -> Tokens:
        """All tokens, including expired ones that are not removed yet."""
        if self.secret is None:
            return {}
        newest = self._active_tokens()
        return self._learned if newest is None else newest

    def replace_all(self, tokens: Tokens) -> None:
        """Replace all tokens."""
        before, self._learned = self._learned, dict(tokens)
        self._credentials = {
            key: credential
            for key, credential in self._credentials.items()
            if key[0] in self._learned
        }
        for token_id in {**before, **self._learned}:
            self._seen(token_id, self._learned.get(token_id))

    def update(self, token_id: str, token: DelegationToken | None) -> None:
        """Replace one token; None removes it."""
        if token is None:
            self._learned.pop(token_id, None)
            for key in [key for key in self._credentials if key[0] == token_id]:
                del self._credentials[key]
        else:
            self._learned[token_id] = token
        self._seen(token_id, token)

    def scram_credential(self, token_id: str, mechanism: int) -> ScramCredential | None:
        """Return the SCRAM credential of a token. The password is the token's HMAC in base64.

        `mechanism` is Kafka's number, 1 or 2. Each broker has its own salts, as in Kafka.
        """
        if self.secret is None or token_id not in self.tokens:
            return None
        credential = self._credentials.get((token_id, mechanism))
        if credential is None:
            password = base64.b64encode(self.secret.hmac(token_id)).decode()
            salt = self._new_salt(_SALT_BYTES)
            credential = derive_credential(mechanism, password, salt, ITERATIONS_MIN)
            self._credentials[token_id, mechanism] = credential
        return credential

    def owner(self, token_id: str) -> str | None:
        """Return the name of a token's owner. A login with the token has this principal."""
        token = self.tokens.get(token_id)
        return None if token is None else token.owner.name

    def expires_at_ms(self, token_id: str) -> int | None:
        """Return the time at which a token expires unless it is renewed."""
        token = self.tokens.get(token_id)
        return None if token is None else token.expiry_ms
