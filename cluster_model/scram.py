"""SCRAM credentials as Kafka stores them (docs/kafka/znodes.md; RFC 5802, KIP-554).

To set a credential, clients send the salted password, never the password itself. Two keys derived
from it are stored. None of these may appear in a log, an event, an outcome or an error.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from cluster_model.znodes.values import INT32_MAX, decimal

MECHANISM_NAMES: Final[Mapping[int, str]] = {1: "SCRAM-SHA-256", 2: "SCRAM-SHA-512"}
ITERATIONS_MIN: Final = 4_096
ITERATIONS_MAX: Final = 16_384
HASH_NAMES: Final[Mapping[int, str]] = {1: "sha256", 2: "sha512"}
_FIELDS: Final = ("salt", "stored_key", "server_key", "iterations")


@dataclass(frozen=True, slots=True)
class ScramCredential:
    """Verifies that a client knows a password. The repr hides the keys."""

    salt: bytes = field(repr=False)
    stored_key: bytes = field(repr=False)
    server_key: bytes = field(repr=False)
    iterations: int


def salted_password(mechanism: int, password: str, salt: bytes, iterations: int) -> bytes:
    """Return the salted password, as clients compute it (RFC 5802 section 3)."""
    return hashlib.pbkdf2_hmac(HASH_NAMES[mechanism], password.encode(), salt, iterations)


def derive_credential(
    mechanism: int, password: str, salt: bytes, iterations: int
) -> ScramCredential:
    """Return the credential of a password. Slow: it runs all iterations."""
    return parse_credential(
        credential_text(
            mechanism, salt, salted_password(mechanism, password, salt, iterations), iterations
        )
    )


def credential_text(mechanism: int, salt: bytes, salted_password: bytes, iterations: int) -> str:
    """Return the stored form of one credential. `salted_password` must not be empty."""
    name = HASH_NAMES[mechanism]
    client_key = hmac.digest(salted_password, b"Client Key", name)
    stored_key = hashlib.new(name, client_key).digest()
    server_key = hmac.digest(salted_password, b"Server Key", name)
    return (
        f"salt={_base64(salt)},stored_key={_base64(stored_key)},"
        f"server_key={_base64(server_key)},iterations={iterations}"
    )


def parse_credential(text: str) -> ScramCredential:
    """Return a stored credential.

    Raises:
        ValueError: the text is invalid; the message does not contain it.
    """
    fields = dict(part.partition("=")[::2] for part in text.split(","))
    if sorted(fields) != sorted(_FIELDS):
        raise ValueError("a stored credential has unknown or missing fields")
    try:
        salt, stored_key, server_key = (
            base64.b64decode(fields[name], validate=True) for name in _FIELDS[:3]
        )
        iterations = decimal(fields["iterations"], INT32_MAX)
        return ScramCredential(salt, stored_key, server_key, iterations)
    except (binascii.Error, ValueError):
        raise ValueError("a stored credential is malformed") from None


def credential_iterations(text: str) -> int:
    """Return the iterations of a stored credential. Raises ValueError."""
    return parse_credential(text).iterations


def _base64(data: bytes) -> str:
    return base64.b64encode(data).decode()
