"""SCRAM (RFC 5802) as an attacker writes it: every part can be replaced."""

from __future__ import annotations

import base64
import hashlib
import hmac
import struct
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from tests.hostile.wire import Wire, blob, head, joined, text

HANDSHAKE, AUTHENTICATE, METADATA = 17, 36, 3
_HASHES: Final = {"SCRAM-SHA-256": "sha256", "SCRAM-SHA-512": "sha512"}


def handshake(mechanism: str, version: int = 1) -> bytes:
    return joined([*head(HANDSHAKE, version), *text(mechanism)])


def token(data: bytes, version: int = 1) -> bytes:
    """Return a SaslAuthenticate request with this token."""
    return joined([*head(AUTHENTICATE, version), *blob(data)])


def probe() -> bytes:
    """Return a Metadata request for no topics; only a client that is logged in gets the brokers."""
    return joined([*head(METADATA, 1), *blob(b"")[:1]])


def is_served(response: bytes | str) -> bool:
    """Return whether a response to `probe` names a broker; an error response names none."""
    return isinstance(response, bytes) and int.from_bytes(response[4:8], "big") > 0


def error_of(response: bytes | str) -> str:
    """Return the error code of SaslHandshake or SaslAuthenticate as text, or CLOSED or SILENT."""
    if isinstance(response, str):
        return response
    (code,) = struct.unpack_from(">h", response, 4)
    return str(code)


def auth_bytes(response: bytes) -> bytes:
    """Return the server's token in a SaslAuthenticate response."""
    (message,) = struct.unpack_from(">h", response, 6)
    at = 8 + max(message, 0)
    (length,) = struct.unpack_from(">i", response, at)
    return response[at + 4 : at + 4 + length]


@dataclass(frozen=True)
class Scram:
    """One exchange; each field replaces its part of the messages."""

    user: str = "alice"
    password: str = "alice-secret"
    mechanism: str = "SCRAM-SHA-256"
    nonce: str = "aGFja2Vy"
    gs2: str = "n,,"
    extensions: str = ""
    first: Callable[[bytes], bytes] = lambda message: message
    final: Callable[[bytes], bytes] = lambda message: message
    nonce_of: Callable[[str], str] = lambda nonce: nonce
    proof_of: Callable[[bytes], bytes] = lambda proof: proof

    def bare(self) -> str:
        return f"n={self.user},r={self.nonce}{self.extensions}"

    def first_message(self) -> bytes:
        return self.first((self.gs2 + self.bare()).encode())

    def final_message(self, challenge: bytes) -> bytes:
        """Return client-final for the server's first message."""
        parts = dict(part.split("=", 1) for part in challenge.decode().split(","))
        name = _HASHES[self.mechanism]
        salted = hashlib.pbkdf2_hmac(
            name, self.password.encode(), base64.b64decode(parts["s"]), int(parts["i"])
        )
        client_key = hmac.digest(salted, b"Client Key", name)
        stored = hashlib.new(name, client_key).digest()
        channel = base64.b64encode(self.gs2.encode()).decode()
        without = f"c={channel},r={self.nonce_of(parts['r'])}"
        signed = f"{self.bare()},{challenge.decode()},{without}".encode()
        signature = hmac.digest(stored, signed, name)
        proof = bytes(a ^ b for a, b in zip(client_key, signature, strict=True))
        encoded = base64.b64encode(self.proof_of(proof)).decode()
        return self.final(f"{without},p={encoded}".encode())

    def run(self, wire: Wire) -> str:
        """Log in; return the error code of the last response."""
        response = wire.call(handshake(self.mechanism))
        if error_of(response) != "0":
            return error_of(response)
        response = wire.call(token(self.first_message()))
        if isinstance(response, str) or error_of(response) != "0":
            return error_of(response)
        return error_of(wire.call(token(self.final_message(auth_bytes(response)))))


def plain(wire: Wire, data: bytes) -> str:
    """Log in with PLAIN's token; return the error code of the last response."""
    response = wire.call(handshake("PLAIN"))
    return error_of(wire.call(token(data))) if error_of(response) == "0" else error_of(response)
