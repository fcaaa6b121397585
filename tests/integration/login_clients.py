"""Three released clients behind one interface for logins.

`LOGINS[client](login)` connects, logs in, and returns the number of brokers in the metadata. It
raises `RejectedLoginError` when the broker rejects the login.
"""

from __future__ import annotations

import asyncio
import base64
import dataclasses
import json
import ssl
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final

import aiokafka.errors
import kafka.errors
import pytest
from aiokafka.abc import AbstractTokenProvider as AiokafkaTokenProvider
from aiokafka.admin import AIOKafkaAdminClient
from aiokafka.conn import ScramAuthenticator
from confluent_kafka import KafkaError, KafkaException
from confluent_kafka.admin import AdminClient
from kafka import KafkaAdminClient
from kafka.net.sasl.oauth import AbstractTokenProvider
from kafka.net.sasl.scram import ScramClient as KafkaScramClient

from bridgehead.cluster import Cluster
from bridgehead.raw_client.blocking import Connection
from tests.unit.broker_proxy.authentication.clients import ScramClient

_TIMEOUT_S: Final = 60
# Until this timeout librdkafka and kafka-python retry a rejected login.
_REJECTION_TIMEOUT_S: Final = 1
_REJECTIONS: Final = (KafkaError._AUTHENTICATION, KafkaError._SSL)


class RejectedLoginError(Exception):
    """The broker rejected the login. The text is that of the client's error."""


@dataclasses.dataclass(frozen=True)
class Login:
    """Address and credentials. `certificate` is a file with a certificate and its key."""

    bootstrap_servers: str
    protocol: str
    mechanism: str = ""
    user: str = ""
    password: str = ""
    ca: Path | None = None
    certificate: Path | None = None
    timeout_s: int = _TIMEOUT_S

    def expecting_rejection(self, **changes: Any) -> Login:
        """Return this login with `changes` and a short timeout, because some clients retry."""
        return dataclasses.replace(self, timeout_s=_REJECTION_TIMEOUT_S, **changes)

    @property
    def token(self) -> str:
        """Return an unsecured token of the user, valid for a minute."""
        return unsecured_token(self.user, expires_s=int(time.time()) + 60)

    def tls(self) -> ssl.SSLContext | None:
        if self.ca is None:
            return None
        context = ssl.create_default_context(cafile=self.ca)
        if self.certificate is not None:
            context.load_cert_chain(self.certificate)
        return context


def unsecured_token(user: str, *, expires_s: int) -> str:
    """Return an unsigned OAUTHBEARER token (RFC 7515) whose `iat` is an hour before its `exp`."""
    parts = {"alg": "none"}, {"sub": user, "iat": expires_s - 3600, "exp": expires_s}
    texts = (base64.urlsafe_b64encode(json.dumps(part).encode()) for part in parts)
    return ".".join(text.decode().rstrip("=") for text in texts) + "."


def confluent_options(login: Login) -> dict[str, Any]:
    options: dict[str, Any] = {
        "bootstrap.servers": login.bootstrap_servers,
        "security.protocol": login.protocol,
        "log_level": 0,
    }
    if login.mechanism:
        options["sasl.mechanism"] = login.mechanism
    if login.mechanism == "OAUTHBEARER":
        options["oauth_cb"] = lambda _: (login.token, time.time() + 60)
    elif login.mechanism:
        options |= {"sasl.username": login.user, "sasl.password": login.password}
    if login.ca is not None:
        options["ssl.ca.location"] = str(login.ca)
    if login.certificate is not None:
        options["ssl.certificate.location"] = str(login.certificate)
        options["ssl.key.location"] = str(login.certificate)
    return options


def with_confluent(login: Login) -> int:
    errors: list[KafkaError] = []
    admin = AdminClient({**confluent_options(login), "error_cb": errors.append})
    deadline = time.monotonic() + login.timeout_s
    while True:
        try:
            return len(admin.list_topics(timeout=1).brokers)
        except KafkaException as error:
            admin.poll(0)
            rejections = [error for error in errors if error.code() in _REJECTIONS]
            if rejections or time.monotonic() > deadline:
                raise RejectedLoginError(str(rejections or error)) from error


def kafka_python_options(login: Login) -> dict[str, Any]:
    class Provider(AbstractTokenProvider):
        def token(self) -> str:
            return login.token

    options: dict[str, Any] = {
        "bootstrap_servers": login.bootstrap_servers,
        "security_protocol": login.protocol,
        "sasl_mechanism": login.mechanism or None,
        "ssl_context": login.tls(),
        "bootstrap_timeout_ms": login.timeout_s * 1000,
    }
    if login.mechanism == "OAUTHBEARER":
        options["sasl_oauth_token_provider"] = Provider()
    elif login.mechanism:
        options |= {"sasl_plain_username": login.user, "sasl_plain_password": login.password}
    return options


def with_kafka_python(login: Login) -> int:
    try:
        admin = KafkaAdminClient(**kafka_python_options(login))
    except kafka.errors.KafkaError as error:
        raise RejectedLoginError(str(error)) from error
    try:
        return len(admin.describe_cluster()["brokers"])
    finally:
        admin.close()


def with_aiokafka(login: Login) -> int:
    return asyncio.run(_with_aiokafka(login))


async def _with_aiokafka(login: Login) -> int:
    class Provider(AiokafkaTokenProvider):
        async def token(self) -> str:
            return login.token

    options: dict[str, Any] = {}
    if login.mechanism == "OAUTHBEARER":
        options["sasl_oauth_token_provider"] = Provider()
    elif login.mechanism:
        options |= {"sasl_plain_username": login.user, "sasl_plain_password": login.password}
    admin = AIOKafkaAdminClient(
        bootstrap_servers=login.bootstrap_servers,
        security_protocol=login.protocol,
        sasl_mechanism=login.mechanism or "PLAIN",
        ssl_context=login.tls(),
        request_timeout_ms=_TIMEOUT_S * 1000,
        **options,
    )
    try:
        await admin.start()
        return len((await admin.describe_cluster())["brokers"])
    except aiokafka.errors.KafkaError as error:
        raise RejectedLoginError(str(error)) from error
    finally:
        await admin.close()


def patch_token_logins(patch: pytest.MonkeyPatch) -> None:
    """Make kafka-python and aiokafka mark their SCRAM user as a delegation token (KIP-48)."""
    original_bytes = KafkaScramClient.first_message
    original_text = ScramAuthenticator.first_message

    def first_bytes(self: KafkaScramClient) -> bytes:
        message: bytes = original_bytes(self) + b",tokenauth=true"
        self.auth_message += b",tokenauth=true"
        return message

    def first_text(self: ScramAuthenticator) -> str:
        message: str = original_text(self) + ",tokenauth=true"
        self._auth_message += ",tokenauth=true"
        return message

    patch.setattr(KafkaScramClient, "first_message", first_bytes)
    patch.setattr(ScramAuthenticator, "first_message", first_text)


LOGINS: Final[Mapping[str, Callable[[Login], int]]] = {
    "confluent-kafka": with_confluent,
    "kafka-python": with_kafka_python,
    "aiokafka": with_aiokafka,
}


# Clients that request delegation tokens, and clients that log in with them.

CREATE, RENEW, EXPIRE, DESCRIBE = 38, 39, 40, 41
_VERSIONS: Final = {CREATE: 3, RENEW: 2, EXPIRE: 2, DESCRIBE: 3, 17: 1, 36: 2, 60: 0, 19: 4}
LISTENER: Final = "SASL_PLAINTEXT"


class Client:
    """One connection to a broker's SASL listener."""

    def __init__(self, cluster: Cluster, broker: int) -> None:
        self._connection = Connection(cluster.bootstrap_server(broker, LISTENER))

    def __enter__(self) -> Client:
        return self

    def __exit__(self, *_: object) -> None:
        self._connection.close()

    def call(self, key: int, body: dict[str, Any]) -> Any:
        """Return the response body; None when the connection was closed."""
        return self.call_version(key, _VERSIONS[key], body)

    def call_version(self, key: int, version: int, body: dict[str, Any]) -> Any:
        """Like `call`, but with a chosen version."""
        try:
            return self._connection.call(key, version, body)
        except ConnectionError:
            return None

    def log_in(self, user: str) -> Client:
        """Log in with SASL PLAIN and the password `<user>-secret`, as in the recordings."""
        assert self._connection.log_in(user, f"{user}-secret")
        return self

    def log_in_with_token(self, token_id: str, proof: str) -> bool:
        """Log in with SCRAM-SHA-256 and `tokenauth`; `proof` is the HMAC in base64."""
        client = ScramClient(token_id, proof, ",tokenauth=true")
        self.call(17, {"mechanism": "SCRAM-SHA-256"})
        first = self._authenticate(client.first())
        if first is None or first["errorCode"]:
            return False
        last = self._authenticate(client.final(base64.b64decode(first["authBytes"])))
        return last is not None and last["errorCode"] == 0

    def _authenticate(self, data: bytes) -> Any:
        return self.call(36, {"authBytes": base64.b64encode(data).decode()})

    def create(self, *renewers: str, lifetime_ms: int = -1) -> Any:
        """Create a token of this user."""
        named = [{"principalType": "User", "principalName": name} for name in renewers]
        owner = {"ownerPrincipalType": None, "ownerPrincipalName": None}
        return self.call(CREATE, {**owner, "renewers": named, "maxLifetimeMs": lifetime_ms})

    def described(self) -> dict[str, Any]:
        """Return every token that this user can describe, by id."""
        response = self.call(DESCRIBE, {"owners": None})
        assert response["errorCode"] == 0
        return {token["tokenId"]: token for token in response["tokens"]}


def logs_in(cluster: Cluster, broker: int, token: Any) -> bool:
    """Return whether a client can log in with the token."""
    with Client(cluster, broker) as client:
        return client.log_in_with_token(token["tokenId"], token["hmac"])
