"""A broker's shell waits for nobody for ever: neither for a handshake nor for a failed login."""

from __future__ import annotations

import ssl
import time

import pytest
import trustme

from broker_proxy.authentication.authenticator import Mechanism
from broker_proxy.authentication.plain import PlainServer
from broker_proxy.authentication.principals import DefaultPrincipalBuilder
from broker_proxy.authentication.ssl_principal_mapper import SslPrincipalMapper
from broker_proxy.logins import Gate
from event_log.connections import AuthenticationFailed, Disconnected
from tests.integration.broker_peers import Broker, until
from tests.unit.authentication.clients import authenticate, handshake


def tls_gate() -> Gate:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    trustme.CA().issue_cert("127.0.0.1").configure_cert(context)
    return Gate(DefaultPrincipalBuilder(SslPrincipalMapper("DEFAULT")), {}, context)


async def test_a_handshake_that_is_not_finished_is_given_up() -> None:
    """In time, with an event that says why."""
    broker = Broker(handshake_s=0.2)
    broker.gate = tls_gate()
    await broker.start()
    silent = await broker.connect()
    assert await silent.answer() is None
    events = broker.log.events
    (why,) = [each.reason for each in events if isinstance(each, AuthenticationFailed)]
    assert why == "the client did not finish the TLS handshake in time"
    assert [each for each in events if isinstance(each, Disconnected)]
    assert broker.server.unknown_count == broker.server.connection_count == 0
    await broker.server.stop(0)


@pytest.mark.parametrize("when", ["at once", "later"])
async def test_a_server_that_stops_waits_for_no_handshake(when: str) -> None:
    """Those that are under way end with it, whenever it stops."""
    broker = Broker()
    broker.gate = tls_gate()
    await broker.start()
    silent = await broker.connect()
    if when == "later":
        await until(lambda: broker.server.unknown_count == 1)
    began = time.monotonic()
    await broker.server.stop(0.1)
    assert time.monotonic() - began < 25
    assert await silent.answer() is None
    await until(lambda: broker.server.connection_count == 0)


async def test_a_failed_login_is_answered_late_and_holds_up_nobody_else() -> None:
    """connection.failed.authentication.delay.ms: who guesses passwords guesses slowly."""
    broker = Broker(failed_login_delay_ms=1_500)
    builder = DefaultPrincipalBuilder(SslPrincipalMapper("DEFAULT"))
    broker.gate = Gate(builder, {"PLAIN": Mechanism(lambda: PlainServer({"alice": "secret"}))})
    await broker.start()
    guesser, honest = await broker.connect(), await broker.connect()
    await guesser.ask(handshake("PLAIN"))
    await honest.ask(handshake("PLAIN"))
    began = time.monotonic()
    guesser.send(authenticate(b"\0alice\0guess"))
    welcome = await honest.ask(authenticate(b"\0alice\0secret"))
    welcomed_s = time.monotonic() - began
    refused = await guesser.answer()
    assert time.monotonic() - began >= 1.5 > welcomed_s
    assert welcome is not None
    assert refused is not None
    assert b"Invalid username or password" in refused
    assert await guesser.answer() is None
    await broker.server.stop(0)
