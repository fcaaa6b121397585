"""SASL SCRAM, RFC 5802, as Kafka's ScramSaslServer implements it, with KIP-48's `tokenauth`.

A client with a delegation token logs in with the token's id as user name, its HMAC as password, and
the SCRAM extension `tokenauth=true`. SCRAM libraries reject this extension, so this module uses no
library. The client gets the same error for an unknown user as for a wrong password.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import re
from collections.abc import Callable, Mapping
from typing import Final, Protocol

from broker_proxy.authentication.sasl_server import (
    SaslAuthenticationError,
    SaslCutOffError,
    SaslError,
    SaslResult,
)
from cluster_model.scram import HASH_NAMES, ITERATIONS_MIN, MECHANISM_NAMES, ScramCredential

# The grammar of RFC 5802 section 7 with the character classes of Kafka's ScramMessages.
_VALUE: Final = r"[\x01-\x2b\x2d-\x7f]+"
_PRINTABLE: Final = r"[\x21-\x2b\x2d-\x7e]+"
_SASL_NAME: Final = r"(?:[\x01-\x2b\x2d-\x3c\x3e-\x7f]|=2C|=3D)+"
_BASE64: Final = r"(?:[A-Za-z0-9/+]{4})*(?:[A-Za-z0-9/+]{3}=|[A-Za-z0-9/+]{2}==)?"
_EXTENSIONS: Final = rf"(?:,[A-Za-z]+={_VALUE})*"
_CLIENT_FIRST: Final = re.compile(
    rf"n,(?:a=(?P<authzid>{_SASL_NAME}))?,"
    rf"(?P<bare>(?:m={_VALUE},)?n=(?P<name>{_SASL_NAME}),r=(?P<nonce>{_PRINTABLE})"
    rf"(?P<extensions>{_EXTENSIONS}))"
)
_CLIENT_FINAL: Final = re.compile(
    rf"(?P<without_proof>c={_BASE64},r=(?P<nonce>{_PRINTABLE}){_EXTENSIONS})"
    rf",p=(?P<proof>{_BASE64})"
)
# Kafka's limit is sasl.server.max.receive.size. This limit is lower, because the regular
# expressions run on input from unauthenticated clients.
MESSAGE_BYTES_MAX: Final = 8 * 1024


class UserCredentials(Protocol):
    """Looks up the SCRAM credentials of users."""

    def scram_credential(self, user: str, mechanism: int) -> ScramCredential | None:
        """Return a user's credential, if there is one."""


class TokenCredentials(Protocol):
    """Looks up delegation tokens."""

    def scram_credential(self, token_id: str, mechanism: int) -> ScramCredential | None:
        """Return the SCRAM credential of a token, if it exists."""

    def owner(self, token_id: str) -> str | None:
        """Return the name of the token's owner, who becomes the principal."""

    def expires_at_ms(self, token_id: str) -> int | None:
        """Return the time at which the token expires unless it is renewed."""


class ScramServer:
    """One SCRAM login. It consists of two client messages."""

    def __init__(
        self,
        mechanism: int,
        users: UserCredentials,
        tokens: TokenCredentials | None,
        new_nonce: Callable[[], str],
    ) -> None:
        """`mechanism` is 1 or 2, as in Kafka. `new_nonce` returns printable text without commas."""
        self._mechanism = mechanism
        self._hash = HASH_NAMES[mechanism]
        self._users = users
        self._tokens = tokens
        self._new_nonce = new_nonce
        self._pending: _Pending | None = None
        self.result: SaslResult | None = None

    def evaluate(self, response: bytes) -> bytes:
        if self.result is not None:
            raise SaslError("a SCRAM message after the end of the exchange")
        if len(response) > MESSAGE_BYTES_MAX:
            raise SaslError("an oversized SCRAM message")
        try:
            text = response.decode("ascii")
        except UnicodeDecodeError:
            raise SaslError("a SCRAM message is not ASCII") from None
        return self._first(text) if self._pending is None else self._final(text, self._pending)

    def _first(self, text: str) -> bytes:
        message = _CLIENT_FIRST.fullmatch(text)
        if message is None:
            raise SaslError("a malformed first SCRAM message")
        name = message["name"].replace("=2C", ",").replace("=3D", "=")
        extensions = _extensions(message["extensions"])
        if extensions.get("tokenauth", "").lower() == "true":
            credential, result = self._find_token(name)
        else:
            credential, result = self._users.scram_credential(name, self._mechanism), None
        if credential is None:
            raise SaslError(f"{name!r} has no {MECHANISM_NAMES[self._mechanism]} credential")
        authorization_id = message["authzid"] or ""
        if authorization_id not in ("", message["name"]):
            raise SaslAuthenticationError(
                "Authentication failed: "
                "Client requested an authorization id that is different from username"
            )
        if credential.iterations < ITERATIONS_MIN:
            raise SaslError(f"the credential of {name!r} has too few iterations")
        nonce = message["nonce"] + self._new_nonce()
        salt = base64.b64encode(credential.salt).decode()
        server_first = f"r={nonce},s={salt},i={credential.iterations}"
        self._pending = _Pending(
            result or SaslResult(name),
            credential,
            nonce,
            f"{message['bare']},{server_first}",
        )
        return server_first.encode()

    def _find_token(self, token_id: str) -> tuple[ScramCredential | None, SaslResult]:
        owner = self._tokens.owner(token_id) if self._tokens is not None else None
        if self._tokens is None or owner is None:
            raise SaslError(f"unknown delegation token {token_id!r}")
        expires_at_ms = self._tokens.expires_at_ms(token_id)
        return (
            self._tokens.scram_credential(token_id, self._mechanism),
            SaslResult(owner, token_authenticated=True, expires_at_ms=expires_at_ms),
        )

    def _final(self, text: str, pending: _Pending) -> bytes:
        message = _CLIENT_FINAL.fullmatch(text)
        if message is None:
            raise SaslError("a malformed final SCRAM message")
        if not hmac.compare_digest(message["nonce"], pending.nonce):
            raise SaslError("the SCRAM nonce belongs to another exchange")
        # As in Kafka, `c=` is part of the signed text, but its value is not checked: Java's client
        # sends the same value for every GS2 header. A check would only detect that channel binding
        # was removed, and channel binding is not supported here.
        auth_message = f"{pending.messages},{message['without_proof']}".encode()
        credential = pending.credential
        signature = hmac.digest(credential.stored_key, auth_message, self._hash)
        proof = base64.b64decode(message["proof"])
        if len(proof) != len(signature):
            raise SaslCutOffError("a SCRAM proof of the wrong length")
        client_key = bytes(a ^ b for a, b in zip(proof, signature, strict=True))
        stored_key = hashlib.new(self._hash, client_key).digest()
        if not hmac.compare_digest(stored_key, credential.stored_key):
            raise SaslError("a wrong SCRAM proof")
        self.result = pending.result
        response = hmac.digest(credential.server_key, auth_message, self._hash)
        return b"v=" + base64.b64encode(response)


class _Pending:
    """The state of a login between its two messages."""

    __slots__ = ("credential", "messages", "nonce", "result")

    def __init__(
        self,
        result: SaslResult,
        credential: ScramCredential,
        nonce: str,
        messages: str,
    ) -> None:
        self.result = result
        self.credential = credential
        self.nonce = nonce
        self.messages = messages


def _extensions(text: str) -> Mapping[str, str]:
    return dict(part.partition("=")[::2] for part in text.split(",") if part)
