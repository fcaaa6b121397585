r"""The SASL OAUTHBEARER exchange, RFC 7628. A validator checks the token.

As in Kafka, the server answers an invalid token with a JSON error, and the client ends the exchange
with `\x01`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from broker_proxy.authentication.sasl_server import (
    SaslAuthenticationError,
    SaslCutOffError,
    SaslError,
    SaslResult,
)

_SASL_NAME: Final = r"(?:[\x01-\x2b\x2d-\x3c\x3e-\x7f]|=2C|=3D)+"
_INITIAL: Final = re.compile(
    rf"n,(?:a=(?P<authzid>{_SASL_NAME}))?,\x01"
    r"(?P<pairs>(?:[A-Za-z]+=[\x20-\x7e\t\r\n]+\x01)*)\x01"
)
_AUTH: Final = re.compile(r"(?P<scheme>\w+) +(?P<token>[-_~+/.a-zA-Z0-9]+=*)")
_ERROR_ACKNOWLEDGED: Final = b"\x01"
_LONE_SURROGATE: Final = re.compile("[\ud800-\udfff]")
MESSAGE_BYTES_MAX: Final = 64 * 1024


@dataclass(frozen=True, slots=True)
class Token:
    """A valid token."""

    principal_name: str
    expires_at_ms: int


class TokenRejectedError(Exception):
    """The token is invalid. The text is for the log and contains no part of the token.

    If the only fault is a missing part of the required scope, `scope` is the required scope.
    """

    def __init__(self, reason: str, scope: str | None = None) -> None:
        super().__init__(reason)
        self.scope = scope


Validate = Callable[[str], Token]  # raises TokenRejectedError


class OAuthBearerServer:
    """One OAUTHBEARER login: one client message, or two if the token is invalid."""

    def __init__(self, validate: Validate) -> None:
        self._validate = validate
        self._rejection: str | None = None
        self.result: SaslResult | None = None

    def evaluate(self, response: bytes) -> bytes:
        if self._rejection is not None and response == _ERROR_ACKNOWLEDGED:
            raise SaslAuthenticationError(self._rejection)
        self._rejection = None
        authorization_id, token_text = _parse(response)
        try:
            token = self._validate(token_text)
            # A JSON string can contain a lone surrogate as an escape.
            if _LONE_SURROGATE.search(token.principal_name):
                raise TokenRejectedError("the principal name is not Unicode text")
        except TokenRejectedError as error:
            status = "insufficient_scope" if error.scope else "invalid_token"
            scope = f', "scope":{json.dumps(error.scope)}' if error.scope else ""
            self._rejection = f'{{"status":"{status}"{scope}}}'
            return self._rejection.encode()
        if authorization_id not in ("", token.principal_name):
            raise SaslAuthenticationError(
                "Authentication failed: Client requested an authorization id "
                f"({authorization_id}) that is different from the token's principal name "
                f"({token.principal_name})"
            )
        self.result = SaslResult(token.principal_name, expires_at_ms=token.expires_at_ms)
        return b""


def _parse(response: bytes) -> tuple[str, str]:
    """Return the authorization id and the token."""
    if len(response) > MESSAGE_BYTES_MAX:
        raise SaslError("an oversized OAUTHBEARER message")
    message = _INITIAL.fullmatch(response.decode("utf-8", "replace"))
    if message is None:
        raise SaslError("Invalid OAUTHBEARER client first message")
    pairs = dict(pair.partition("=")[::2] for pair in message["pairs"].split("\x01") if pair)
    auth = _AUTH.fullmatch(pairs.get("auth", ""))
    if auth is None:
        raise SaslError("Invalid OAUTHBEARER client first message: no bearer token in 'auth'")
    if auth["scheme"].lower() != "bearer":
        raise SaslCutOffError("Invalid scheme in OAUTHBEARER client first message")
    return message["authzid"] or "", auth["token"]
