"""Creates logins from the client's properties: users, delegation tokens, bearer tokens."""

from __future__ import annotations

import base64
import json
import secrets
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final
from urllib.parse import unquote, urlsplit

from bridgehead.admin.config import AdminConfig
from bridgehead.admin.errors import AdminConfigError, AuthenticationError
from bridgehead.admin.logins import Login, OAuthBearerLogin, PlainLogin, ScramLogin

NewLogin = Callable[[], Login]
_BEARER_URL: Final = "sasl.oauthbearer.token.endpoint.url"
_CLAIM: Final = "unsecuredLoginStringClaim_"
_LIFETIME: Final = "unsecuredLoginLifetimeSeconds"
_PRINCIPAL_CLAIM: Final = "unsecuredLoginPrincipalClaimName"


def login_source(config: AdminConfig, token: Callable[[], str] | None) -> NewLogin | None:
    """Return a function that creates a login for each connection; None without SASL.

    `token` returns a bearer token for OAUTHBEARER.

    Raises:
        AdminConfigError: a credential is missing.
    """
    mechanism = config.mechanism
    if mechanism is None:
        return None
    options = config.jaas.options if config.jaas is not None else {}
    if mechanism == "OAUTHBEARER":
        source = token or _token_source(config, options)
        return lambda: OAuthBearerLogin(source)
    if not {"username", "password"} <= set(options):
        raise AdminConfigError(
            f"{mechanism} needs sasl.jaas.config with a login module and its options "
            'username="…" and password="…".'
        )
    user, password = options["username"], options["password"]
    if mechanism == "PLAIN":
        return lambda: PlainLogin(user, password)
    extensions = "tokenauth=true" if options.get("tokenauth", "").lower() == "true" else ""
    return lambda: ScramLogin(mechanism, user, password, secrets.token_hex(16), extensions)


def _token_source(config: AdminConfig, options: Mapping[str, str]) -> Callable[[], str]:
    url = config.texts.get(_BEARER_URL, "")
    if url:
        parts = urlsplit(url)
        if parts.scheme != "file":
            raise AdminConfigError(f"{_BEARER_URL} must be a file: URL; http is not supported.")
        return lambda: _token_of_file(Path(unquote(parts.path)))
    claims = {
        name.removeprefix(_CLAIM): value
        for name, value in options.items()
        if name.startswith(_CLAIM)
    }
    if options.get(_PRINCIPAL_CLAIM, "sub") not in claims:
        raise AdminConfigError(
            f'OAUTHBEARER needs a token: set {_CLAIM}sub="USER" in sasl.jaas.config for an '
            f"unsecured one, {_BEARER_URL}=file:///… for a signed one, or pass `token`."
        )
    lifetime = options.get(_LIFETIME, "3600")
    if not lifetime.isdigit():
        raise AdminConfigError(f"{_LIFETIME} must be a number of seconds.")
    return lambda: unsecured_token(claims, time.time(), int(lifetime))


def unsecured_token(claims: Mapping[str, str], now_s: float, lifetime_s: int) -> str:
    """Return an unsigned token. Anyone can forge it, so it is for development only, as in Kafka."""
    issued_s = int(now_s)  # rounded down: a broker rejects a token that is issued in the future
    body = {**claims, "iat": issued_s, "exp": issued_s + lifetime_s}
    parts = (json.dumps(part).encode() for part in ({"alg": "none"}, body))
    return ".".join(base64.urlsafe_b64encode(part).decode().rstrip("=") for part in parts) + "."


def _token_of_file(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not text"
        raise AuthenticationError(f"The token file {path} cannot be read: {reason}") from None
