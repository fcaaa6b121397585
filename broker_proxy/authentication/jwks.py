"""Validates signed OAUTHBEARER tokens with the keys of a JWKS file (KIP-768).

    sasl.server.callback.handler.class=…oauthbearer.OAuthBearerValidatorCallbackHandler
    sasl.oauthbearer.jwks.endpoint.url=file:///etc/keys.json

The keys must be in a file: this code contacts no server. If a token names an unknown key and the
file has changed, the validator reads the file again.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final
from urllib.parse import unquote, urlsplit

import jwt

from broker_proxy.authentication.oauthbearer import Token, TokenRejectedError
from broker_proxy.authentication.sasl_server import SecurityConfigError

_URL: Final = "sasl.oauthbearer.jwks.endpoint.url"
_SKEW: Final = "sasl.oauthbearer.clock.skew.seconds"
# Only asymmetric algorithms are accepted: with a shared secret any broker could sign tokens.
_ALGORITHMS: Final = (
    *("RS256", "RS384", "RS512", "PS256", "PS384", "PS512"),
    *("ES256", "ES384", "ES512", "EdDSA"),
)
_TOKEN_BYTES_MAX: Final = 32 * 1024
_TIME_MAX: Final = 1e12  # seconds since 1970


class JwksValidator:
    """Validates a token; returns its principal name and its expiry."""

    def __init__(self, properties: Mapping[str, str], now_ms: Callable[[], int]) -> None:
        """Read the listener's `properties`. Raises SecurityConfigError if they are invalid."""
        self._file = _file_of(properties.get(_URL, "").strip())
        self._now_ms = now_ms
        self._scope_claim = properties.get("sasl.oauthbearer.scope.claim.name", "scope").strip()
        self._name_claim = properties.get("sasl.oauthbearer.sub.claim.name", "sub").strip()
        try:
            self._skew_ms = int(properties.get(_SKEW, "30")) * 1000
        except ValueError:
            raise SecurityConfigError(f"{_SKEW} must be a number of seconds.") from None
        audiences = properties.get("sasl.oauthbearer.expected.audience", "").split(",")
        self._audiences = [audience.strip() for audience in audiences if audience.strip()]
        self._issuer = properties.get("sasl.oauthbearer.expected.issuer", "").strip() or None
        self._read_at = -1
        self._keys: Mapping[str | None, jwt.PyJWK] = {}
        try:
            self._read_again()
        except (OSError, ValueError, jwt.PyJWTError) as error:
            raise SecurityConfigError(
                f"{_URL}: {self._file} holds no usable keys ({type(error).__name__})."
            ) from None

    def __call__(self, token: str) -> Token:
        if len(token) > _TOKEN_BYTES_MAX:
            raise TokenRejectedError("the token is too long")
        try:
            key = self._key(jwt.get_unverified_header(token).get("kid"))
            claims = jwt.decode(
                token,
                key,
                algorithms=_ALGORITHMS,
                issuer=self._issuer,
                audience=self._audiences or None,
                # Times are checked below, with the injected clock.
                options={
                    "verify_exp": False,
                    "verify_iat": False,
                    "verify_nbf": False,
                    "verify_aud": bool(self._audiences),
                    "require": ["exp", "iat"],
                },
            )
        except (jwt.PyJWTError, ValueError, TypeError, RecursionError) as error:
            raise TokenRejectedError(f"the token is invalid: {type(error).__name__}") from None
        return self._judge(claims)

    def _judge(self, claims: Mapping[str, Any]) -> Token:
        times = [claims["exp"], claims["iat"]]
        if claims.get("nbf") is not None:  # optional, unlike `exp` and `iat`
            times.append(claims["nbf"])
        if not all(map(_is_time, times)):
            raise TokenRejectedError("a time claim is not a number")
        expires_ms, *valid_from_ms = (round(time * 1000) for time in times)
        now = self._now_ms()
        if now - self._skew_ms >= expires_ms or max(valid_from_ms) - self._skew_ms > now:
            raise TokenRejectedError("the token has expired or is not valid yet")
        name = claims.get(self._name_claim)
        if not isinstance(name, str) or not name.strip():
            raise TokenRejectedError(f"the claim {self._name_claim} is not a name")
        scope = claims.get(self._scope_claim, "")
        if not isinstance(scope, str | list):
            raise TokenRejectedError(f"the claim {self._scope_claim} is not a scope")
        return Token(name.strip(), expires_ms)

    def _key(self, key_id: str | None) -> jwt.PyJWK:
        if key_id not in self._keys:
            try:
                self._read_again()
            except (OSError, ValueError, jwt.PyJWTError) as error:
                reason = f"the keys cannot be read: {type(error).__name__}"
                raise TokenRejectedError(reason) from None
        if key_id is None and len(self._keys) == 1:
            return next(iter(self._keys.values()))
        if key_id not in self._keys:
            raise TokenRejectedError("the token names an unknown key")
        return self._keys[key_id]

    def _read_again(self) -> None:
        changed_at = self._file.stat().st_mtime_ns
        if changed_at == self._read_at:
            return
        self._keys = _keys_of(self._file.read_bytes())
        self._read_at = changed_at


def _keys_of(document: bytes) -> Mapping[str | None, jwt.PyJWK]:
    """Return the keys of a JWK Set that may verify signatures, by id.

    Raises:
        ValueError: the document is not a JWK Set.
        jwt.PyJWTError: it has no usable key.
    """
    try:
        members = json.loads(document)["keys"]
        signing = [member for member in members if _is_for_signatures(member)]
        return {key.key_id: key for key in jwt.PyJWKSet(signing).keys}
    except (TypeError, KeyError, AttributeError, RecursionError):
        raise ValueError("not a JWK Set") from None


def _is_for_signatures(member: Mapping[str, Any]) -> bool:
    """Return whether a key has no `use` and `key_ops`, or they permit it. RFC 7517 §4.2, §4.3."""
    return member.get("use", "sig") == "sig" and "verify" in member.get("key_ops", ["verify"])


def _is_time(value: Any) -> bool:
    """Return whether a claim is a finite number of seconds. The JSON number 1e999 is infinite."""
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return is_number and abs(value) < _TIME_MAX


def _file_of(url: str) -> Path:
    parts = urlsplit(url)
    if parts.scheme != "file" or parts.netloc not in ("", "localhost"):
        raise SecurityConfigError(
            f"{_URL} must be a file URL such as file:///etc/keys.json; keys are not fetched."
        )
    return Path(unquote(parts.path))
