"""With zookeeper.set.acl a real ZooKeeper lets only the controller session write metadata."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from kazoo.client import KazooClient
from kazoo.exceptions import NoAuthError
from kazoo.security import OPEN_ACL_UNSAFE

from bridgehead.cluster import Cluster
from bridgehead.cluster.zookeeper import EmbeddedZooKeeper
from bridgehead.raw_client.blocking import Connection
from bridgehead.raw_client.codec import create_topics, decode_message
from cluster_model.znodes.access import Credential
from tests.integration.zookeeper_peers import kazoo_client
from tests.zookeeper_cases import EXPECTED, Case
from zookeeper_client.session import ZooKeeperSession

CONTROLLER, BROKER = Credential("controller", "write-secret"), Credential("broker", "read-secret")
ALL, READ, CREATE = 31, 1, 4
SENSITIVE = ("/config/users", "/config/brokers", "/delegation_token/tokens")
OURS = ("/brokers/ids", "/bridgehead/nodes")


@pytest.fixture(scope="module")
def cluster(zookeeper_server: EmbeddedZooKeeper) -> Iterator[Cluster]:
    """Two brokers with a topic and a quota. Everyone has all rights on /, so they use a chroot."""
    connect = f"{zookeeper_server.connect}/with-rights"
    properties = {
        "zookeeper.set.acl": "true",
        "bridgehead.zookeeper.controller.credential": CONTROLLER.text,
        "bridgehead.zookeeper.broker.credential": BROKER.text,
        "delegation.token.secret.key": "token-master-key",
    }
    with Cluster(brokers=2, controller=1, zookeeper=connect, properties=properties) as running:
        connection = Connection(running.bootstrap_server(2))
        response = connection.exchange(create_topics(["orders"]))
        assert isinstance(response, bytes)
        assert decode_message(19, 4, response).topics[0].error_code == 0
        op = {"key": "consumer_byte_rate", "value": 5.0, "remove": False}
        entry = {"entity": [{"entityType": "user", "entityName": "alice"}], "ops": [op]}
        body = {"entries": [entry], "validateOnly": False}
        assert connection.call(49, 1, body)["entries"]
        connection.close()
        yield running


Open = Callable[[Credential | None], KazooClient]


@pytest.fixture
def session(cluster: Cluster) -> Iterator[Open]:
    """Opens sessions of the test's own, with or without a credential."""
    clients = []

    def open_one(credential: Credential | None) -> KazooClient:
        auth_data = [("digest", credential.text)] if credential else None
        client = KazooClient(cluster.zookeeper_connect, auth_data=auth_data)
        client.start()
        clients.append(client)
        return client

    yield open_one
    for client in clients:
        client.stop()
        client.close()


def walk(client: KazooClient, path: str = "/") -> Iterator[str]:
    """Yield every znode except ZooKeeper's own and the root."""
    for name in client.get_children(path):
        child = f"{path.rstrip('/')}/{name}"
        if child != "/zookeeper":
            yield child
            yield from walk(client, child)


WRITES: dict[str, Callable[[KazooClient], object]] = {
    "a topic": lambda c: c.set("/brokers/topics/orders", b"{}"),
    "a new topic": lambda c: c.create("/brokers/topics/mine", b"{}"),
    "a partition": lambda c: c.set("/brokers/topics/orders/partitions/0/state", b"{}"),
    "a config": lambda c: c.create("/config/topics/mine", b"{}"),
    "a user": lambda c: c.set("/config/users/alice", b"{}"),
    "a notification": lambda c: c.create("/config/changes/config_change_", b"", sequence=True),
    "a deletion": lambda c: c.create("/admin/delete_topics/orders"),
    "a token": lambda c: c.create("/delegation_token/tokens/mine", b"{}"),
    "the epoch": lambda c: c.set("/controller_epoch", b"99"),
    "the controller": lambda c: c.delete("/controller"),
    "the counter": lambda c: c.set("/bridgehead/commit", b"99"),
    "an outcome": lambda c: c.create("/bridgehead/outcomes/9999999999", b"{}"),
    "rights": lambda c: c.set_acls("/brokers/topics", OPEN_ACL_UNSAFE),
}


@pytest.mark.parametrize("write", WRITES)
def test_broker_session_cannot_write(session: Open, write: str) -> None:
    """A session without a credential cannot write either."""
    for credential in (BROKER, None):
        with pytest.raises(NoAuthError):
            WRITES[write](session(credential))


def test_broker_session_reads_sensitive_znodes(session: Open) -> None:
    """The znodes hold credentials and tokens."""
    assert b"consumer_byte_rate" in session(BROKER).get("/config/users/alice")[0]
    assert session(BROKER).get_children("/delegation_token/tokens") == []
    for path in ("/config/users/alice", "/config/brokers", "/delegation_token/tokens"):
        with pytest.raises(NoAuthError):
            session(None).get(path)
    assert session(None).get("/brokers/topics/orders")[0]


def test_znodes_have_the_acls_of_kafka_and_two_more_entries(session: Open) -> None:
    """The creator has all rights, and everyone can read a znode that is not sensitive.

    On /consumers everyone has all rights. Bridgehead adds two entries: the broker session can read
    sensitive znodes, and create children of /brokers/ids and /bridgehead/nodes.
    """
    client = session(CONTROLLER)
    client.add_auth("digest", BROKER.text)
    seen = set()
    for path in walk(client):
        creator = BROKER if path.startswith(tuple(f"{name}/" for name in OURS)) else CONTROLLER
        expected = {(ALL, "digest", creator.digest_id)}
        if path == "/consumers":
            expected = {(ALL, "world", "anyone")}
        elif path.startswith(SENSITIVE):
            expected.add((READ, "digest", BROKER.digest_id))
        else:
            expected.add((READ, "world", "anyone"))
        if path in OURS:
            expected.add((CREATE, "digest", BROKER.digest_id))
        acls = {(acl.perms, acl.id.scheme, acl.id.id) for acl in client.get_acls(path)[0]}
        assert acls == expected, path
        seen.add(path)
    assert {"/consumers", "/brokers/ids/2", "/config/users/alice", "/controller"} <= seen
    assert {"/brokers/topics/orders/partitions/0/state", "/bridgehead/nodes/1"} <= seen


def test_resigned_controller_keeps_no_writing_session(cluster: Cluster, session: Open) -> None:
    """The next controller uses the same credential in its own session."""
    cluster.move_controller(2)
    assert cluster.wait_for_controller(other_than=1) == 2
    connection = Connection(cluster.bootstrap_server(1))
    response = connection.exchange(create_topics(["refunds"]))
    connection.close()
    assert isinstance(response, bytes)
    assert decode_message(19, 4, response).topics[0].error_code == 0
    owner = session(None).get("/controller")[1].owner_session_id
    holders = {session(None).get(f"/brokers/ids/{n}")[1].owner_session_id for n in (1, 2)}
    assert owner not in holders


def test_passwords_are_only_in_node_properties(cluster: Cluster) -> None:
    """Events, logs and the run record contain no password."""
    files = [file for file in cluster.data_dir.rglob("*") if file.is_file()]
    assert len(files) > 5
    for file in files:
        if file.suffix == ".properties":
            assert file.stat().st_mode & 0o077 == 0, file
        else:
            content = file.read_bytes()
            assert b"write-secret" not in content, file
            assert b"read-secret" not in content, file


def test_credentials_of_an_embedded_zookeeper_are_generated(tmp_path: Path) -> None:
    """The credentials are generated once; a restart reuses them.

    Without credentials a client can delete neither /controller nor /controller_epoch.
    """
    for name in ("first", "second"):
        with Cluster(
            brokers=1, data_dir=tmp_path, properties={"zookeeper.set.acl": "true"}
        ) as running:
            connection = Connection(running.bootstrap_server(1))
            response = connection.exchange(create_topics([name]))
            connection.close()
            assert isinstance(response, bytes)
            assert decode_message(19, 4, response).topics[0].error_code == 0
            with kazoo_client(running.zookeeper_connect) as stranger:
                assert name in stranger.get_children("/brokers/topics")
                for path in ("/controller", "/controller_epoch"):
                    with pytest.raises(NoAuthError):
                        stranger.delete(path)
    assert (tmp_path / "channel" / "zookeeper.json").stat().st_mode & 0o077 == 0


# A real ZooKeeper passes the cases that also test the simulated ZooKeeper.


@pytest.mark.parametrize("case", EXPECTED, ids=lambda case: case.__name__)
async def test_real_zookeeper_passes_the_case(case: Case, zookeeper: Any) -> None:
    opened: list[ZooKeeperSession] = []

    async def open_session() -> ZooKeeperSession:
        session = ZooKeeperSession(
            zookeeper.connect, session_timeout_ms=4000, on_state=lambda _state: None
        )
        opened.append(session)
        await session.open(20)
        await session.create_root()
        return session

    try:
        assert await case(open_session) == EXPECTED[case]
    finally:
        for session in opened:
            await session.close()
