"""Kafka's default validator for OAUTHBEARER: unsigned tokens, RFC 7515 appendix A.5.

Anyone can forge an unsigned token. As Kafka's documentation says, use it only for development.
"""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Callable, Mapping
from typing import Any, Final

from broker_proxy.authentication.oauthbearer import Token, TokenRejectedError
from broker_proxy.authentication.sasl_server import SecurityConfigError

_OPTIONS: Final = (
    "unsecuredValidatorPrincipalClaimName",
    "unsecuredValidatorScopeClaimName",
    "unsecuredValidatorRequiredScope",
    "unsecuredValidatorAllowableClockSkewMs",
)
_DEPTH_BYTES_MAX: Final = 32 * 1024  # json.loads recurses, so this bounds the nesting


class UnsecuredJwsValidator:
    """Validates a token by the options of Kafka's login module; returns its name and expiry."""

    def __init__(self, options: Mapping[str, str], now_ms: Callable[[], int]) -> None:
        """Parse the options. Raises SecurityConfigError if they are invalid."""
        self._principal_claim = options.get(_OPTIONS[0], "sub")
        self._scope_claim = options.get(_OPTIONS[1], "scope")
        self._required = frozenset(options.get(_OPTIONS[2], "").split())
        skew = options.get(_OPTIONS[3], "0")
        if not skew.isdigit():
            raise SecurityConfigError(f"{_OPTIONS[3]} must be a number of milliseconds.")
        self._skew_ms = int(skew)
        self._now_ms = now_ms

    def __call__(self, token: str) -> Token:
        parts = token.split(".")
        if len(token) > _DEPTH_BYTES_MAX:
            raise TokenRejectedError(f"the token is longer than {_DEPTH_BYTES_MAX} bytes")
        if len(parts) != 3 or parts[2]:
            raise TokenRejectedError("not an unsecured JWS of three parts, the last one empty")
        if _object(parts[0]).get("alg") != "none":
            raise TokenRejectedError("the token's algorithm is not none")
        claims = _object(parts[1])
        name = claims.get(self._principal_claim)
        if not isinstance(name, str) or not name.strip():
            raise TokenRejectedError(f"the claim {self._principal_claim} is not a name")
        issued, expires = _time_ms(claims, "iat"), _time_ms(claims, "exp")
        now = self._now_ms()
        if expires is None:
            raise TokenRejectedError("the claim exp is missing")
        if issued is not None and issued > now + self._skew_ms:
            raise TokenRejectedError("the token was issued in the future")
        if now - self._skew_ms >= expires:
            raise TokenRejectedError("the token has expired")
        if issued is not None and expires <= issued:
            raise TokenRejectedError("the token does not expire after it was issued")
        missing = self._required - _scope(claims.get(self._scope_claim))
        if missing:
            raise TokenRejectedError(
                "a required scope is missing", " ".join(sorted(self._required))
            )
        return Token(name, expires)


def _object(part: str) -> Mapping[str, Any]:
    try:
        value = json.loads(base64.urlsafe_b64decode(part + "=" * (-len(part) % 4)))
    except (binascii.Error, ValueError, RecursionError):
        raise TokenRejectedError("a part of the token is not a JSON object") from None
    if not isinstance(value, dict):
        raise TokenRejectedError("a part of the token is not a JSON object")
    return value


def _time_ms(claims: Mapping[str, Any], name: str) -> int | None:
    value = claims.get(name)
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float) or not abs(value) < 1e12:
        raise TokenRejectedError(f"the claim {name} is not a time")
    return round(value * 1000)


def _scope(value: Any) -> frozenset[str]:
    if value is None:
        return frozenset()
    if isinstance(value, str):
        return frozenset(value.split())
    if isinstance(value, list) and all(isinstance(item, str) for item in value):
        return frozenset(value)
    raise TokenRejectedError("the token's scope is neither a string nor a list of strings")
