"""The client's side of SASL: PLAIN (RFC 4616), SCRAM (RFC 5802), OAUTHBEARER (RFC 7628)."""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
from collections.abc import Callable
from typing import Final, Protocol

from bridgehead.admin.errors import AuthenticationError

HASH_NAMES: Final = {"SCRAM-SHA-256": "sha256", "SCRAM-SHA-512": "sha512"}
# Kafka's minimum. With fewer iterations a malicious broker could guess the password faster from the
# client's proof.
_ITERATIONS_MIN: Final = 4096
_ITERATIONS_MAX: Final = 1_000_000  # limits the work that a malicious broker can cause


class Login(Protocol):
    """One login. The client sends messages to the broker until `response` returns None."""

    mechanism: str

    def first(self) -> bytes:
        """Return the first message."""
        ...

    def respond(self, challenge: bytes) -> bytes | None:
        """Return the next message; None if the login is complete. Raises AuthenticationError."""
        ...


class PlainLogin:
    """User and password in plain text: use it over TLS."""

    mechanism = "PLAIN"

    def __init__(self, user: str, password: str) -> None:
        self._message = f"\0{user}\0{password}".encode()

    def first(self) -> bytes:
        return self._message

    def respond(self, challenge: bytes) -> bytes | None:
        return None


class ScramLogin:
    """A SCRAM login. The broker also proves that it knows the password.

    `extensions` is `tokenauth=true` for a delegation token (KIP-48).
    """

    def __init__(
        self, mechanism: str, user: str, password: str, nonce: str, extensions: str = ""
    ) -> None:
        """`nonce` is printable text without a comma, different in each login."""
        self.mechanism = mechanism
        self._hash = HASH_NAMES[mechanism]
        self._password = password.encode()
        self._nonce = nonce
        name = user.replace("=", "=3D").replace(",", "=2C")
        self._bare = f"n={name},r={nonce}" + (f",{extensions}" if extensions else "")
        self._signature: bytes | None = None

    def first(self) -> bytes:
        return f"n,,{self._bare}".encode()

    def respond(self, challenge: bytes) -> bytes | None:
        if self._signature is not None:
            return self._verify(challenge, self._signature)
        try:
            fields = _fields(challenge)
            nonce, salt, iterations = fields["r"], _decoded(fields["s"]), int(fields["i"])
        except (KeyError, ValueError):
            raise AuthenticationError("The broker's SCRAM message is malformed.") from None
        is_safe = _ITERATIONS_MIN <= iterations <= _ITERATIONS_MAX
        if not nonce.startswith(self._nonce) or not is_safe:
            raise AuthenticationError(
                "The broker's SCRAM message has a wrong nonce or iteration count."
            )
        salted = hashlib.pbkdf2_hmac(self._hash, self._password, salt, iterations)
        client_key = hmac.digest(salted, b"Client Key", self._hash)
        stored_key = hashlib.new(self._hash, client_key).digest()
        unproven = f"c=biws,r={nonce}"
        signed = f"{self._bare},{challenge.decode()},{unproven}".encode()
        signature = hmac.digest(stored_key, signed, self._hash)
        proof = bytes(a ^ b for a, b in zip(client_key, signature, strict=True))
        server_key = hmac.digest(salted, b"Server Key", self._hash)
        self._signature = hmac.digest(server_key, signed, self._hash)
        return f"{unproven},p={base64.b64encode(proof).decode()}".encode()

    @staticmethod
    def _verify(challenge: bytes, signature: bytes) -> None:
        try:
            fields = _fields(challenge)
            verified = hmac.compare_digest(_decoded(fields.get("v", "")), signature)
        except ValueError:
            verified = False
        if not verified:
            raise AuthenticationError("The broker does not prove that it knows the password.")


class OAuthBearerLogin:
    """A bearer token. `new_token` is called for each login."""

    mechanism = "OAUTHBEARER"

    def __init__(self, new_token: Callable[[], str]) -> None:
        self._new_token = new_token

    def first(self) -> bytes:
        """See Login. Raises AuthenticationError if `new_token` fails."""
        try:
            token = self._new_token()
        except AuthenticationError:
            raise
        except Exception as error:
            raise AuthenticationError(
                f"The function that returns the token failed: {type(error).__name__}: {error}"
            ) from error
        return f"n,,\x01auth=Bearer {token}\x01\x01".encode()

    def respond(self, challenge: bytes) -> bytes | None:
        """See Login. A challenge that is not empty has the reason why the broker rejects the token.

        After the client's answer, the broker fails the login.
        """
        return b"\x01" if challenge else None


def _fields(message: bytes) -> dict[str, str]:
    """Return the fields of a SCRAM message. Raises ValueError."""
    return dict(part.partition("=")[::2] for part in message.decode().split(","))


def _decoded(text: str) -> bytes:
    try:
        return base64.b64decode(text, validate=True)
    except binascii.Error as error:
        raise ValueError(str(error)) from None
