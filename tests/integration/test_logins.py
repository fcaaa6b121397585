"""Released clients log in over plain connections and over TLS."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator

import pytest
from confluent_kafka.admin import AdminClient

from tests.integration.login_clients import (
    EXPIRE,
    LOGINS,
    Client,
    Login,
    RejectedLoginError,
    confluent_options,
    patch_token_logins,
)
from tests.integration.processes import wait_until
from tests.integration.secured import Secured

CLIENTS = tuple(LOGINS)
MECHANISMS = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "OAUTHBEARER")
PROTOCOLS = ("SASL_PLAINTEXT", "SASL_SSL")
BROKERS = 3


@pytest.fixture(scope="module")
def secured(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Secured]:
    """Three brokers with every kind of listener."""
    more = {"delegation.token.secret.key": "token-secret"}
    more |= {"listener.name.sasl_ssl.scram-sha-512.connections.max.reauth.ms": "1500"}
    with Secured.start(tmp_path_factory.mktemp("certificates"), more) as running:
        running.set_password("alice", "alice-secret")
        yield running


def check_rejected(secured: Secured, broker: int, client: str, login: Login) -> None:
    """Log in until the broker counts a failure. Every attempt must fail.

    One attempt may not be enough: the broker may miss a failure if the client closes the connection
    early.
    """
    before = secured.metric(broker, "failed_authentication_total")

    def counted() -> bool:
        with pytest.raises(RejectedLoginError):
            LOGINS[client](login.expecting_rejection())
        return secured.metric(broker, "failed_authentication_total") > before

    wait_until(counted)


@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize("mechanism", MECHANISMS)
@pytest.mark.parametrize("client", CLIENTS)
def test_a_client_logs_in(secured: Secured, client: str, mechanism: str, protocol: str) -> None:
    login = secured.login(2, protocol, mechanism, "alice", "alice-secret")
    assert LOGINS[client](login) == BROKERS


@pytest.mark.parametrize("mechanism", MECHANISMS[:3])
@pytest.mark.parametrize("client", CLIENTS)
def test_a_wrong_password_is_rejected_and_counted(
    secured: Secured, client: str, mechanism: str
) -> None:
    check_rejected(
        secured, 2, client, secured.login(2, "SASL_PLAINTEXT", mechanism, "alice", "wrong")
    )


@pytest.mark.parametrize("client", CLIENTS)
def test_mutual_tls_maps_the_certificate_to_a_principal(secured: Secured, client: str) -> None:
    login = secured.login(1, "SSL", certificate=secured.certificate("carol"))
    assert LOGINS[client](login) == BROKERS
    assert "User:carol" in secured.principals(1)
    for certificate in (secured.strangers_certificate("carol"), None):
        check_rejected(secured, 1, client, dataclasses.replace(login, certificate=certificate))


def test_a_changed_password_takes_effect_on_every_broker(
    secured: Secured,
) -> None:
    secured.set_password("dave", "first-secret")
    for word, other in (("first-secret", "second-secret"), ("second-secret", "first-secret")):
        secured.set_password("dave", word)
        for broker in range(1, BROKERS + 1):
            for mechanism in MECHANISMS[1:3]:
                login = secured.login(broker, "SASL_PLAINTEXT", mechanism, "dave", word)
                secured.until_it_works(login)
                with pytest.raises(RejectedLoginError):
                    LOGINS["aiokafka"](login.expecting_rejection(password=other))
    secured.delete_user("dave")
    for broker in range(1, BROKERS + 1):
        login = secured.login(broker, "SASL_PLAINTEXT", "SCRAM-SHA-256", "dave", "second-secret")
        secured.until_it_is_rejected(login)


def test_librdkafka_reauthenticates_without_a_failed_request(secured: Secured) -> None:
    login = secured.login(3, "SASL_SSL", "SCRAM-SHA-512", "alice", "alice-secret")
    brokers = range(1, BROKERS + 1)

    def total(name: str) -> float:
        return sum(secured.metric(broker, name) for broker in brokers)

    admin = AdminClient(confluent_options(login))
    wait_until(
        lambda: (
            len(admin.list_topics(timeout=5).brokers) == BROKERS
            and total("successful_reauthentication_total") >= 2
        )
    )
    assert total("expired_connections_killed_count_total") == 0
    assert total("failed_reauthentication_total") == 0
    renewals = [
        event
        for broker in brokers
        for event in secured.events(broker, "authenticated")
        if event["renewed"]
    ]
    assert {event["principal"] for event in renewals} == {"User:alice"}


@pytest.mark.parametrize("client", ["kafka-python", "aiokafka"])
def test_a_client_logs_in_with_a_delegation_token(
    secured: Secured, client: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After the token is deleted, the login fails. librdkafka does not support tokens (KIP-48)."""
    with Client(secured.cluster, 2).log_in("alice") as alice:
        token = alice.create()
        patch_token_logins(monkeypatch)
        for broker in range(1, BROKERS + 1):
            proof = {"user": token["tokenId"], "password": token["hmac"]}
            login = secured.login(broker, "SASL_SSL", "SCRAM-SHA-256", **proof)
            secured.until_it_works(login)
            assert LOGINS[client](login) == BROKERS
        gone = alice.call(EXPIRE, {"hmac": token["hmac"], "expiryTimePeriodMs": -1})
        assert gone["errorCode"] == 0
    for broker in range(1, BROKERS + 1):
        there = secured.cluster.bootstrap_server(broker, "SASL_SSL")
        secured.until_it_is_rejected(dataclasses.replace(login, bootstrap_servers=there))
    with pytest.raises(RejectedLoginError):
        LOGINS[client](login.expecting_rejection())
    events = [event for event in secured.events(3, "authenticated") if event["token_authenticated"]]
    assert {event["principal"] for event in events} == {"User:alice"}
