"""SASL PLAIN (RFC 4616), with users configured as for Kafka's PlainLoginModule.

Clients see the error messages, which were recorded from Kafka.
"""

from __future__ import annotations

import hmac
from collections.abc import Mapping
from typing import Final

from broker_proxy.authentication.sasl_server import SaslAuthenticationError, SaslResult

_TOKENS: Final = 3
_FAILED: Final = "Authentication failed: "


class PlainServer:
    """One PLAIN login. It consists of one client message."""

    def __init__(self, passwords: Mapping[str, str]) -> None:
        """`passwords` maps user names to passwords, from `user_NAME="PASSWORD"`."""
        self._passwords = passwords
        self.result: SaslResult | None = None

    def evaluate(self, response: bytes) -> bytes:
        # As in Kafka, at most four tokens are counted.
        tokens = response.decode("utf-8", "replace").split("\0", _TOKENS)
        if len(tokens) != _TOKENS:
            raise SaslAuthenticationError(
                f"Invalid SASL/PLAIN response: expected 3 tokens, got {len(tokens)}"
            )
        authorization_id, user, password = tokens
        if not user:
            raise SaslAuthenticationError(_FAILED + "username not specified")
        if not password:
            raise SaslAuthenticationError(_FAILED + "password not specified")
        expected = self._passwords.get(user)
        # Unknown users get the same comparison, so its time does not show whether a user exists.
        equal = hmac.compare_digest((expected or "").encode(), password.encode())
        if expected is None or not equal:
            raise SaslAuthenticationError(_FAILED + "Invalid username or password")
        if authorization_id and authorization_id != user:
            raise SaslAuthenticationError(
                _FAILED + "Client requested an authorization id that is different from username"
            )
        self.result = SaslResult(user)
        return b""
