"""Hostile clients cannot log in, stop a node, or use much of its memory.

Each attempt is counted, and other clients are served during and after it.
"""

from __future__ import annotations

import asyncio
import base64
import socket
import ssl
import struct
from collections.abc import AsyncIterator, Iterator
from contextlib import ExitStack, asynccontextmanager, suppress

import psutil
import pytest

from bridgehead.raw_client.blocking import CLOSED, Connection
from bridgehead.raw_client.codec import encode_json
from broker_proxy.connections.server import UNAUTHENTICATED_MAX
from tests.integration.login_clients import LOGINS
from tests.integration.processes import wait_until
from tests.integration.secured import Secured
from tests.unit.broker_proxy.authentication.clients import (
    ScramClient,
    authenticate,
    handshake,
    metadata,
)

HALF_OPEN = 1_000
MIB = 1024 * 1024
_FAILED = "failed_authentication_total"
_UNKNOWN = "unauthenticated_connection_count"


@pytest.fixture(scope="module")
def secured(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Secured]:
    """Three brokers with every kind of listener. They respond to a failed login after 1 ms."""
    folder = tmp_path_factory.mktemp("certificates")
    soon = {"connection.failed.authentication.delay.ms": "1"}
    with Secured.start(folder, soon) as running:
        running.set_password("alice", "alice-secret")
        yield running


def serves(secured: Secured) -> bool:
    """Return whether a client with the right password can log in over TLS."""
    return LOGINS["aiokafka"](secured.login(1, "SASL_SSL", "PLAIN", "alice", "alice-secret")) == 3


def address(secured: Secured, listener: str) -> tuple[str, int]:
    host, _, port = secured.cluster.bootstrap_server(1, listener).rpartition(":")
    return host, int(port)


def memory(secured: Secured) -> int:
    return int(psutil.Process(secured.cluster.brokers[1].pid).memory_info().rss)


def test_a_thousand_half_open_handshakes_use_little_memory(secured: Secured) -> None:
    before, failed = memory(secured), secured.metric(1, _FAILED)
    hello = client_hello()
    with ExitStack() as open_:
        for number in range(HALF_OPEN):
            stranger = open_.enter_context(socket.create_connection(address(secured, "SASL_SSL")))
            if number % 2:
                stranger.sendall(hello if number % 4 == 1 else hello[:100])
        wait_until(lambda: secured.metric(1, _UNKNOWN) >= HALF_OPEN)
        assert serves(secured)
        assert memory(secured) - before < 150 * MIB
    wait_until(lambda: secured.metric(1, _UNKNOWN) == 0)
    assert secured.metric(1, _FAILED) - failed >= HALF_OPEN
    assert serves(secured)


def test_above_the_limit_the_oldest_unauthenticated_clients_are_closed(secured: Secured) -> None:
    failed = secured.metric(1, _FAILED)
    with ExitStack() as open_:
        strangers = [
            open_.enter_context(socket.create_connection(address(secured, "SASL_PLAINTEXT")))
            for _ in range(UNAUTHENTICATED_MAX + 50)
        ]
        strangers[0].settimeout(10)
        with suppress(ConnectionResetError):
            assert strangers[0].recv(1) == b""
        wait_until(lambda: secured.metric(1, _FAILED) - failed >= 50)
        assert secured.metric(1, _UNKNOWN) <= UNAUTHENTICATED_MAX
        assert serves(secured)
    wait_until(lambda: secured.metric(1, _UNKNOWN) == 0)


def test_an_untrusted_or_missing_certificate_is_counted(secured: Secured) -> None:
    failed, before = secured.metric(1, _FAILED), len(secured.events(1, "authentication_failed"))
    for certificate in (secured.strangers_certificate("mallory"), None):
        with suppress(OSError), socket.create_connection(address(secured, "SSL"), 30) as near:
            # In TLS 1.3 the client's handshake ends before the server checks the certificate, so
            # the client notices the rejection only when it reads.
            tls = secured.client_tls(certificate)
            with tls.wrap_socket(near, server_hostname="127.0.0.1") as stranger:
                stranger.sendall(struct.pack(">i", len(metadata())) + metadata())
                assert stranger.recv(1) == b""
    wait_until(lambda: len(secured.events(1, "authentication_failed")) == before + 2, timeout_s=30)
    for event in secured.events(1, "authentication_failed")[before:]:
        assert (event["listener"], event["mechanism"]) == ("SSL", None)
        assert "TLS handshake failed" in str(event["reason"])
        assert "mallory" not in str(event)
    assert secured.metric(1, _FAILED) - failed == 2
    assert "User:mallory" not in secured.principals(1)


def client_hello() -> bytes:
    outgoing = ssl.MemoryBIO()
    context = ssl.create_default_context()
    client = context.wrap_bio(ssl.MemoryBIO(), outgoing, server_hostname="localhost")
    with pytest.raises(ssl.SSLWantReadError):
        client.do_handshake()
    return outgoing.read()


def scram_first(nonce: str = "x") -> bytes:
    return authenticate(ScramClient("alice", "alice-secret", nonce=nonce).first())


NO_HANDSHAKE = (metadata(), authenticate(b"\0alice\0alice-secret"), b"", b"\xff" * 64)
WITHIN_SCRAM = (
    authenticate(b""),
    authenticate(b"c=biws,r=x,p="),
    authenticate(b"c=biws,r=x," + b"p=" + base64.b64encode(bytes(32))),
    authenticate(b"n,,n=alice,r=x"),
    authenticate(b"\xff" * 1000),
    authenticate(b"x" * 500_000),
    metadata(),
    handshake("PLAIN"),
)


def test_unexpected_requests_are_rejected_and_counted(secured: Secured) -> None:
    failed = secured.metric(1, _FAILED)
    server = secured.cluster.bootstrap_server(1, "SASL_PLAINTEXT")
    for frame in NO_HANDSHAKE:
        assert Connection(server).exchange(frame) == CLOSED
    for frame in WITHIN_SCRAM:
        connection = Connection(server)
        assert isinstance(connection.exchange(handshake("SCRAM-SHA-256")), bytes)
        assert isinstance(connection.exchange(scram_first()), bytes)
        response = connection.exchange(frame)
        assert response == CLOSED or response[4:6] in (b"\0\x3a", b"\0\x22", b"\0\0")
        assert connection.exchange(metadata()) == CLOSED
    attempts = len(NO_HANDSHAKE) + len(WITHIN_SCRAM)
    assert secured.metric(1, _FAILED) - failed == attempts
    assert len(secured.events(1, "authentication_failed")) == secured.metric(1, _FAILED)


def test_wrong_proofs_and_reused_nonces_are_rejected(secured: Secured) -> None:
    server = secured.cluster.bootstrap_server(1, "SASL_PLAINTEXT")
    client = ScramClient("alice", "alice-secret", nonce="reused")

    def begin_login() -> tuple[Connection, bytes]:
        connection = Connection(server)
        connection.exchange(handshake("SCRAM-SHA-256"))
        response = connection.exchange(authenticate(client.first(), 1))
        assert isinstance(response, bytes)
        (length,) = struct.unpack_from(">i", response, 8)
        return connection, response[12 : 12 + length]

    first, challenge = begin_login()
    proof = client.final(challenge)
    accepted = first.exchange(authenticate(proof, 1))
    assert isinstance(accepted, bytes)
    assert accepted[4:6] == b"\0\0"
    for bad_proof in (proof, client.final(begin_login()[1], tamper=lambda _: bytes(32))):
        thief, _ = begin_login()
        rejected = thief.exchange(authenticate(bad_proof, 1))
        assert isinstance(rejected, bytes)
        assert rejected[4:6] == b"\0\x3a"
        assert b"invalid credentials" in rejected
        assert b"nonce" not in rejected
        assert thief.exchange(metadata()) == CLOSED


def test_a_huge_iteration_count_is_rejected(secured: Secured) -> None:
    upsertion = {
        "name": "mallory",
        "mechanism": 1,
        "iterations": 2**31 - 1,
        "salt": base64.b64encode(b"salt").decode(),
        "saltedPassword": base64.b64encode(bytes(32)).decode(),
    }
    connection = Connection(secured.cluster.bootstrap_server(1, "SASL_PLAINTEXT"))
    assert connection.log_in("admin", "admin-secret")
    body = {"deletions": [], "upsertions": [upsertion]}
    response = connection.exchange(encode_json(51, 0, body))
    assert isinstance(response, bytes)
    assert b"Too many iterations" in response


def test_a_large_frame_before_login_closes_the_connection(secured: Secured) -> None:
    host_port = address(secured, "SASL_PLAINTEXT")
    with socket.create_connection(host_port, timeout=10) as stranger:
        stranger.sendall(struct.pack(">i", 100_000) + b"\0" * 100)
        assert stranger.recv(1) == b""
    logged_in = Connection(secured.cluster.bootstrap_server(1, "SASL_PLAINTEXT"))
    assert logged_in.log_in("alice", "alice-secret")
    many = encode_json(3, 1, {"topics": [{"name": "t" * 200} for _ in range(4_000)]})
    assert len(many) > 600_000
    assert isinstance(logged_in.exchange(many), bytes)


@asynccontextmanager
async def tls_stream(
    secured: Secured, listener: str, context: ssl.SSLContext
) -> AsyncIterator[tuple[asyncio.StreamReader, asyncio.StreamWriter]]:
    reader, writer = await asyncio.open_connection(*address(secured, listener), ssl=context)
    try:
        yield reader, writer
    finally:
        writer.close()


async def test_many_concurrent_handshakes_succeed(secured: Secured) -> None:
    """A client's first request can be in the packet that ends the handshake."""

    async def one() -> bytes:
        context = secured.client_tls()
        async with tls_stream(secured, "SASL_SSL", context) as (reader, writer):
            payload = encode_json(18, 0, {}, client_id="probe")
            writer.write(struct.pack(">i", len(payload)) + payload)
            async with asyncio.timeout(20):
                return await reader.readexactly(8)

    responses = await asyncio.gather(*(one() for _ in range(200)))
    assert {response[4:] for response in responses} == {b"\0\0\0\1"}
