"""ZooKeeper has no plain-text port, so every session and every dump uses TLS."""

from __future__ import annotations

import asyncio
import json
import socket
import ssl
from collections.abc import AsyncIterator, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
import trustme

from bridgehead.cluster import Cluster
from bridgehead.raw_client.blocking import Connection
from bridgehead.raw_client.codec import create_topics, decode_message
from cluster_model.session_state import ConnectionLostError
from node.znode_dump import read_access
from tests.integration.zookeeper_peers import STORE_PASSWORD, TlsZooKeeper, tls_zookeeper
from zookeeper_client.session import ZooKeeperSession
from zookeeper_client.tls_handler import TlsHandler

OPEN_S, REJECTED_S = 60.0, 8.0


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TlsZooKeeper]:
    """A running server for all tests."""
    with tls_zookeeper(tmp_path_factory.mktemp("tls-zookeeper")) as started:
        asyncio.run(responses(started))
        yield started


async def responses(server: TlsZooKeeper) -> None:
    async with session(server, server.properties()):
        pass


@asynccontextmanager
async def session(
    server: TlsZooKeeper, properties: Mapping[str, str], host: str = "127.0.0.1"
) -> AsyncIterator[ZooKeeperSession]:
    opened = ZooKeeperSession(
        f"{host}:{server.port}",
        session_timeout_ms=120_000,
        on_state=lambda _: None,
        access=read_access(properties),
    )
    is_good = properties == server.properties() and host in server.connect
    await opened.open(OPEN_S if is_good else REJECTED_S)
    try:
        yield opened
    finally:
        await opened.close()


def create(cluster: Cluster, broker: int, name: str) -> int:
    connection = Connection(cluster.bootstrap_server(broker))
    response = connection.exchange(create_topics([name]))
    connection.close()
    assert isinstance(response, bytes)
    return int(decode_message(19, 4, response).topics[0].error_code)


def test_cluster_runs_over_tls(server: TlsZooKeeper, tmp_path: Path) -> None:
    """The controller moves, its session expires, and the run's dumps of ZooKeeper are written."""
    connect = f"{server.connect}/cluster"
    properties = server.properties("client.p12")
    with Cluster(brokers=2, zookeeper=connect, properties=properties, data_dir=tmp_path) as cluster:
        first = cluster.wait_for_controller()
        assert create(cluster, 3 - first, "forwarded") == 0
        cluster.expire_controller()
        assert create(cluster, first, "after-the-session") == 0
        cluster.move_controller(3 - cluster.wait_for_controller())
        assert create(cluster, first, "after-the-move") == 0
        folder = cluster.evidence_dir
    dumps = json.loads((folder / "zookeeper" / "dumps.json").read_text())
    assert set(dumps) == {"zookeeper/first.jsonl", "zookeeper/final.jsonl"}
    names = (folder / "zookeeper" / "final.jsonl").read_text()
    assert all(f"/brokers/topics/{name}" in names for name in ("forwarded", "after-the-move"))
    for file in (path for path in tmp_path.rglob("*") if path.is_file()):
        if file.suffix == ".properties":
            assert file.stat().st_mode & 0o077 == 0, file
        else:
            assert STORE_PASSWORD.encode() not in file.read_bytes(), file


def test_direct_writes_use_tls(server: TlsZooKeeper, tmp_path: Path) -> None:
    """A broker below the bridge release opens a session for direct writes when it starts."""
    properties = {**server.properties(), "inter.broker.protocol.version": "3.3"}
    connect = f"{server.connect}/direct"
    with Cluster(brokers=1, zookeeper=connect, properties=properties, data_dir=tmp_path) as cluster:
        assert cluster.status()["brokers"][0]["state"]["writes_directly"]


async def session_error(server: TlsZooKeeper, changes: Mapping[str, str], host: str) -> str:
    """Return why a session could not be opened."""
    with pytest.raises(ConnectionLostError) as caught:
        async with session(server, {**server.properties(), **changes}, host):
            pass
    return str(caught.value)


@pytest.mark.long
async def test_untrusted_server_is_rejected(server: TlsZooKeeper, tmp_path: Path) -> None:
    """The client rejects a certificate of an unknown authority, and one for another host.

    The server rejects a client without a certificate.
    """
    trustme.CA().cert_pem.write_to_path(tmp_path / "stranger.pem")
    stranger = {"zookeeper.ssl.truststore.location": str(tmp_path / "stranger.pem")}
    reason, whose, _ = await asyncio.gather(
        session_error(server, stranger, "127.0.0.1"),
        session_error(server, {}, "localhost"),
        session_error(server, {"zookeeper.ssl.keystore.location": ""}, "127.0.0.1"),
    )
    assert "the TLS handshake failed" in reason
    assert "local issuer" in reason
    assert "not valid for 'localhost'" in whose


def test_data_buffered_by_tls_can_be_read(server: TlsZooKeeper) -> None:
    """A second reply in the same TLS record is read, although the socket gets no more input."""
    near, far = socket.socketpair()
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(server.folder / "client.pem")
    trusting = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    trusting.check_hostname, trusting.verify_mode = False, ssl.CERT_NONE
    with ThreadPoolExecutor() as other:
        accepted = other.submit(context.wrap_socket, far, server_side=True)
        client = trusting.wrap_socket(near)
        responding = accepted.result()
    with client, responding:
        responding.sendall(b"one reply, and another")
        assert client.recv(9) == b"one reply"
        handler = TlsHandler(trusting)
        assert handler.select([client], [], [], 30.0)[0] == [client]
        assert client.recv(100) == b", and another"
        assert handler.select([client], [], [], 0)[0] == []
