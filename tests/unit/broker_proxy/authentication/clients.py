"""SASL clients, implemented from the RFCs."""

from __future__ import annotations

import base64
import hashlib
import hmac
import itertools
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from bridgehead.kafka_wire.codec import decode_response, encode_request
from bridgehead.kafka_wire.headers import (
    RequestHeader,
    decode_response_header,
    encode_request_header,
)
from bridgehead.kafka_wire.messages.api_versions import ApiVersionsRequest
from bridgehead.kafka_wire.messages.metadata import MetadataRequest
from bridgehead.kafka_wire.messages.sasl_authenticate import SaslAuthenticateRequest
from bridgehead.kafka_wire.messages.sasl_handshake import SaslHandshakeRequest
from broker_proxy.authentication.authenticator import (
    LoginOutcome,
    Mechanism,
    Reject,
    SaslAuthenticator,
    SendResponse,
)
from broker_proxy.authentication.plain import PlainServer
from broker_proxy.authentication.sasl_server import SaslResult
from broker_proxy.authentication.scram import ScramServer
from cluster_model.principal import KafkaPrincipal
from cluster_model.scram import ScramCredential, derive_credential

SALT = b"salt of a test"


def request(key: int, version: int, message: Any) -> bytes:
    header = encode_request_header(RequestHeader(key, version, 7, "c"))
    return header + encode_request(key, version, message)


def handshake(mechanism: str, version: int = 1) -> bytes:
    return request(17, version, SaslHandshakeRequest(mechanism))


def authenticate(token: bytes, version: int = 2) -> bytes:
    return request(36, version, SaslAuthenticateRequest(token))


def api_versions() -> bytes:
    return request(18, 0, ApiVersionsRequest())


def metadata() -> bytes:
    return request(3, 1, MetadataRequest(topics=[]))


def response_to(outcome: LoginOutcome, key: int, version: int) -> Any:
    """Return the decoded response in an outcome."""
    assert isinstance(outcome, SendResponse | Reject), outcome
    assert outcome.payload is not None
    _, at = decode_response_header(key, version, outcome.payload)
    return decode_response(key, version, outcome.payload[at:])


@dataclass
class Credentials:
    """SCRAM credentials of users or tokens; owners and the expiry time of tokens."""

    credentials: Mapping[str, ScramCredential] = field(default_factory=dict)
    owners: Mapping[str, str] = field(default_factory=dict)
    expiry_ms: int | None = None

    def scram_credential(self, name: str, mechanism: int) -> ScramCredential | None:
        return self.credentials.get(name) if mechanism == 1 else None

    def owner(self, token_id: str) -> str | None:
        return self.owners.get(token_id)

    def expires_at_ms(self, token_id: str) -> int | None:
        return self.expiry_ms


def credential(password: str, iterations: int = 4096) -> ScramCredential:
    return derive_credential(1, password, SALT, iterations)


class ScramClient:
    """The client of RFC 5802 with SHA-256. The argument `tamper` of `final` changes the proof."""

    def __init__(self, user: str, password: str, extensions: str = "", nonce: str = "cn") -> None:
        self.bare = f"n={user},r={nonce}{extensions}"
        self._password = password

    def first(self, header: str = "n,,") -> bytes:
        return (header + self.bare).encode()

    def final(
        self,
        server_first: bytes,
        nonce: str | None = None,
        tamper: Callable[[bytes], bytes] = lambda proof: proof,
    ) -> bytes:
        text = server_first.decode()
        fields = dict(part.partition("=")[::2] for part in text.split(","))
        salted = hashlib.pbkdf2_hmac(
            "sha256", self._password.encode(), base64.b64decode(fields["s"]), int(fields["i"])
        )
        without_proof = f"c=biws,r={nonce or fields['r']}"
        auth_message = f"{self.bare},{text},{without_proof}".encode()
        client_key = hmac.digest(salted, b"Client Key", "sha256")
        signature = hmac.digest(hashlib.sha256(client_key).digest(), auth_message, "sha256")
        proof = bytes(a ^ b for a, b in zip(client_key, signature, strict=True))
        self.expected = hmac.digest(
            hmac.digest(salted, b"Server Key", "sha256"), auth_message, "sha256"
        )
        return f"{without_proof},p={base64.b64encode(tamper(proof)).decode()}".encode()


def scram_server(
    users: Credentials, tokens: Credentials | None = None, first_nonce: int = 1
) -> ScramServer:
    numbers = itertools.count(first_nonce)
    return ScramServer(1, users, tokens, lambda: f"server-nonce-{next(numbers)}")


def authenticator(
    *,
    max_reauth_ms: int = 0,
    users: Credentials | None = None,
    tokens: Credentials | None = None,
    wall_ms: int = 0,
) -> SaslAuthenticator:
    def build(mechanism: str, result: SaslResult) -> KafkaPrincipal:
        return KafkaPrincipal(
            "User", result.authorization_id, token_authenticated=result.token_authenticated
        )

    passwords = {"alice": "alice-secret", "bob": "bob-secret"}
    mechanisms = {
        "PLAIN": Mechanism(lambda: PlainServer(passwords), max_reauth_ms),
        "SCRAM-SHA-256": Mechanism(
            lambda: scram_server(users or Credentials(), tokens), max_reauth_ms
        ),
    }
    return SaslAuthenticator(mechanisms, build, lambda: wall_ms)
