"""Unfinished TLS handshakes and failed logins do not delay other clients."""

from __future__ import annotations

import ssl
import time

import pytest
import trustme

from broker_proxy.authentication.authenticator import Mechanism
from broker_proxy.authentication.listener_security import LoginRequirements
from broker_proxy.authentication.plain import PlainServer
from broker_proxy.authentication.principals import DefaultPrincipalBuilder
from broker_proxy.authentication.ssl_principal_mapper import SslPrincipalMapper
from event_log.events import AuthenticationFailed, Disconnected
from tests.integration.broker_peers import Broker, until
from tests.unit.broker_proxy.authentication.clients import authenticate, handshake


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
