"""The client's side of SASL against the broker's side."""

from __future__ import annotations

from typing import Any

import pytest

from bridgehead.admin.calls import cluster
from bridgehead.admin.credentials import unsecured_token
from bridgehead.admin.errors import AuthenticationError
from bridgehead.admin.logins import Login, OAuthBearerLogin, PlainLogin, ScramLogin
from bridgehead.kafka_wire.api_key import ApiKey
from bridgehead.kafka_wire.messages.describe_cluster import DescribeClusterResponse
from bridgehead.kafka_wire.messages.sasl_authenticate import SaslAuthenticateResponse
from bridgehead.kafka_wire.messages.sasl_handshake import SaslHandshakeResponse
from broker_proxy.authentication.plain import PlainServer
from broker_proxy.authentication.sasl_server import SaslError
from broker_proxy.authentication.scram import ScramServer
from broker_proxy.authentication.unsecured_jws import UnsecuredJwsValidator
from cluster_model.scram import ScramCredential, derive_credential
from tests.unit.bridgehead.admin.world import World

MECHANISMS = {"SCRAM-SHA-256": 1, "SCRAM-SHA-512": 2}


class Users:
    """One user with a name that SCRAM must escape."""

    def scram_credential(self, user: str, mechanism: int) -> ScramCredential | None:
        credential = derive_credential(mechanism, "pass,=word", b"salt of a test", 4096)
        return credential if user == "a=b,c" else None


def exchange(login: Login, server: Any) -> None:
    message: bytes | None = login.first()
    while message is not None:
        message = login.respond(server.evaluate(message))


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_scram_proves_the_password_to_both_sides(mechanism: str) -> None:
    server = ScramServer(MECHANISMS[mechanism], Users(), None, lambda: "servers")
    exchange(ScramLogin(mechanism, "a=b,c", "pass,=word", "clients"), server)
    assert server.result is not None
    assert server.result.authorization_id == "a=b,c"


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_scram_with_a_wrong_password_is_rejected(mechanism: str) -> None:
    server = ScramServer(MECHANISMS[mechanism], Users(), None, lambda: "servers")
    with pytest.raises(SaslError, match="wrong SCRAM proof"):
        exchange(ScramLogin(mechanism, "a=b,c", "wrong", "clients"), server)


@pytest.mark.parametrize(
    "challenges",
    [
        [b"r=other,s=c2FsdA==,i=4096"],  # not the client's nonce
        [b"r=clients1,s=c2FsdA==,i=99999999"],  # would take the client hours
        [b"r=clients1,s=c2FsdA==,i=4095"],  # makes the password easier to guess
        [b"r=clients1,s=?,i=4096"],
        [b"e=other-error"],
        [b"r=clients1,s=c2FsdA==,i=4096", b"v=AAAA"],  # the broker does not know the password
    ],
)
def test_a_broker_that_cannot_be_trusted_ends_the_login(challenges: list[bytes]) -> None:
    login = ScramLogin("SCRAM-SHA-256", "user", "password", "clients")
    for challenge in challenges[:-1]:
        login.respond(challenge)
    with pytest.raises(AuthenticationError):
        login.respond(challenges[-1])


def test_plain_sends_user_and_password() -> None:
    server = PlainServer({"alice": "secret"})
    exchange(PlainLogin("alice", "secret"), server)
    assert server.result is not None


def test_a_rejected_bearer_token_is_acknowledged() -> None:
    """RFC 7628: after this acknowledgement the broker fails the login."""
    login = OAuthBearerLogin(lambda: "t")
    assert login.first() == b"n,,\x01auth=Bearer t\x01\x01"
    assert login.respond(b'{"status":"invalid_token"}') == b"\x01"
    assert login.respond(b"") is None


def test_an_unsecured_token_is_not_issued_in_the_future() -> None:
    """The broker compares milliseconds, so it would reject an issue time that is rounded up."""
    now_s = 1_700_000_000.9996
    token = unsecured_token({"sub": "alice"}, now_s, 60)
    validate = UnsecuredJwsValidator({}, lambda: int(now_s * 1000))
    assert validate(token).principal_name == "alice"


def logging_in(
    handshake_code: int = 0, code: int = 0, lifetime_ms: int = 0, login: Login | None = None
) -> World:
    """Return a world with SASL brokers and a client that logs in, by default with PLAIN."""
    world = World(login=lambda: login or PlainLogin("alice", "secret"))
    world.everywhere(
        ApiKey.SASL_HANDSHAKE, lambda *_: SaslHandshakeResponse(handshake_code, ["SCRAM-SHA-512"])
    )
    world.everywhere(
        ApiKey.SASL_AUTHENTICATE,
        lambda *_: SaslAuthenticateResponse(code, "no such user", b"", lifetime_ms),
    )
    world.everywhere(ApiKey.DESCRIBE_CLUSTER, lambda *_: DescribeClusterResponse(cluster_id="c"))
    return world


def test_a_login_comes_after_the_version_negotiation() -> None:
    world = logging_in()
    assert world.run(cluster.describe_cluster()).get().cluster_id == "c"
    assert world.new_lines() == [
        "0 1 connected",
        "0 1 ApiVersions v3",
        "0 1 SaslHandshake v1",
        "0 1 SaslAuthenticate v2",
        "0 1 DescribeCluster v1",
    ]


@pytest.mark.parametrize(
    ("codes", "text"),
    [
        ((33, 0), "PLAIN is not enabled; enabled: SCRAM-SHA-512."),
        ((0, 58), "The login at broker-1:9092 failed: no such user"),
    ],
)
def test_a_failed_login_is_not_repeated(codes: tuple[int, int], text: str) -> None:
    world = logging_in(*codes)
    error = world.run(cluster.describe_cluster()).error
    assert isinstance(error, AuthenticationError)
    assert text in str(error)
    assert world.now_ms == 0
    assert world.open_connections() == []


def test_a_token_function_that_fails_does_not_close_the_client() -> None:
    failures = [ValueError("no network")]

    def token() -> str:
        for failure in failures:
            raise failure
        return "token"

    world = logging_in(login=OAuthBearerLogin(token))
    error = world.run(cluster.describe_cluster()).error
    assert isinstance(error, AuthenticationError)
    assert "no network" in str(error)
    failures.clear()
    world.advance_to(1_000)
    assert world.run(cluster.describe_cluster()).get().cluster_id == "c"


def test_a_connection_is_replaced_before_its_login_expires() -> None:
    """KIP-368: after the expiry, the broker would close the connection at the next request."""
    world = logging_in(lifetime_ms=10_000)
    world.run(cluster.describe_cluster()).get()
    world.advance_to(8_000)
    world.new_lines()
    world.run(cluster.describe_cluster()).get()
    assert world.new_lines() == ["8000 1 DescribeCluster v1"]
    world.advance_to(9_000)
    world.run(cluster.describe_cluster()).get()
    assert world.new_lines()[:2] == ["9000 1 disconnected", "9000 1 connected"]
