"""Connection limits of a real node, changed at run time."""

from __future__ import annotations

import ssl
import time
from typing import Final

import pytest
import trustme

from bridgehead.raw_client.blocking import CLOSED, Connection
from bridgehead.raw_client.codec import encode_json
from broker_proxy.authentication.authenticator import Mechanism
from broker_proxy.authentication.listener_security import LoginRequirements
from broker_proxy.authentication.plain import PlainServer
from broker_proxy.authentication.principals import DefaultPrincipalBuilder
from broker_proxy.authentication.ssl_principal_mapper import SslPrincipalMapper
from event_log.events import AuthenticationFailed, Disconnected
from tests.integration.broker_peers import Broker, until
from tests.integration.conftest import StartCluster
from tests.unit.broker_proxy.authentication.clients import authenticate, handshake

WITHIN_S: Final = 60
RESPONSE_S: Final = 1.0
ALTER, API_VERSIONS = 44, 18
LIMITED: Final = "127.0.0.9"


def served(client: Connection) -> bytes | str:
    return client.exchange(encode_json(API_VERSIONS, 0, {}))


def configure(admin: Connection, broker: str, name: str, value: str) -> None:
    """Set one config of a broker, or of all brokers if `broker` is empty."""
    config = {"name": name, "configOperation": 0, "value": value}
    resource = {"resourceType": 4, "resourceName": broker, "configs": [config]}
    body = {"resources": [resource], "validateOnly": False}
    (result,) = admin.call(ALTER, 0, body)["responses"]
    assert result["errorCode"] == 0, result


def test_stored_connection_limits_take_effect(
    start_brokers: StartCluster,
) -> None:
    cluster = start_brokers(
        brokers=1,
        properties={
            "listeners": "PLAINTEXT://:0,CLIENTS://:0",
            "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CLIENTS:PLAINTEXT",
        },
    )
    admin = Connection(cluster.bootstrap_server(1))  # on the inter-broker listener
    address = cluster.bootstrap_server(1, "CLIENTS")
    deadline = time.monotonic() + WITHIN_S

    configure(admin, "", "max.connections.per.ip.overrides", f"{LIMITED}:1")
    first = Connection(address, LIMITED)
    while served(second := Connection(address, LIMITED)) != CLOSED:
        assert time.monotonic() < deadline, "the limit of an address never took effect"
        second.close()
    assert isinstance(served(first), bytes), "an existing connection was closed"
    other = Connection(address)
    assert isinstance(served(other), bytes), "the limit of one address applied to another"
    first.close()

    configure(admin, "1", "listener.name.clients.max.connections", "1")
    while isinstance(served(late := Connection(address, timeout_s=RESPONSE_S)), bytes):
        assert time.monotonic() < deadline, "the limit of a listener never took effect"
        late.close()
    other.close()
    late.set_timeout(WITHIN_S)
    assert isinstance(late.receive(), bytes), "the waiting connection was not served"

    configure(admin, "1", "max.connections", "1")
    late.set_timeout(WITHIN_S)
    assert late.receive() == CLOSED, "the broker did not close a connection above its limit"
    assert isinstance(served(admin), bytes), "the limit applied to the inter-broker listener"


# Unfinished TLS handshakes and failed logins do not delay other clients.


def tls_requirements() -> LoginRequirements:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    trustme.CA().issue_cert("127.0.0.1").configure_cert(context)
    return LoginRequirements(DefaultPrincipalBuilder(SslPrincipalMapper("DEFAULT")), {}, context)


async def test_an_unfinished_handshake_times_out() -> None:
    broker = Broker(handshake_s=0.2)
    broker.requirements = tls_requirements()
    await broker.start()
    silent = await broker.connect()
    assert await silent.receive_or_none() is None
    events = broker.log.events
    (reason,) = [event.reason for event in events if isinstance(event, AuthenticationFailed)]
    assert reason == "the client did not finish the TLS handshake in time"
    assert [event for event in events if isinstance(event, Disconnected)]
    assert broker.server.unauthenticated_count == broker.server.connection_count == 0
    await broker.server.stop(0)


@pytest.mark.parametrize("when", ["at once", "later"])
async def test_stopping_cancels_unfinished_handshakes(when: str) -> None:
    broker = Broker()
    broker.requirements = tls_requirements()
    await broker.start()
    silent = await broker.connect()
    if when == "later":
        await until(lambda: broker.server.unauthenticated_count == 1)
    began = time.monotonic()
    await broker.server.stop(0.1)
    assert time.monotonic() - began < 25
    assert await silent.receive_or_none() is None
    await until(lambda: broker.server.connection_count == 0)


async def test_a_failed_login_gets_its_response_late_without_delaying_others() -> None:
    """connection.failed.authentication.delay.ms sets the delay."""
    broker = Broker(failed_login_delay_ms=1_500)
    builder = DefaultPrincipalBuilder(SslPrincipalMapper("DEFAULT"))
    broker.requirements = LoginRequirements(
        builder, {"PLAIN": Mechanism(lambda: PlainServer({"alice": "secret"}))}
    )
    await broker.start()
    wrong, right = await broker.connect(), await broker.connect()
    await wrong.exchange(handshake("PLAIN"))
    await right.exchange(handshake("PLAIN"))
    began = time.monotonic()
    wrong.send(authenticate(b"\0alice\0guess"))
    success = await right.exchange(authenticate(b"\0alice\0secret"))
    success_s = time.monotonic() - began
    failure = await wrong.receive_or_none()
    assert time.monotonic() - began >= 1.5 > success_s
    assert success is not None
    assert failure is not None
    assert b"Invalid username or password" in failure
    assert await wrong.receive_or_none() is None
    await broker.server.stop(0)
