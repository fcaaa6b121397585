"""The decoder reads the transaction log of a running and of a killed ZooKeeper."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest
from kazoo.client import KazooClient
from kazoo.exceptions import BadVersionError, KazooException, NodeExistsError
from kazoo.protocol.serialization import Create
from kazoo.security import OPEN_ACL_UNSAFE, READ_ACL_UNSAFE

from bridgehead.cluster.java import find_java
from bridgehead.cluster.ports import Ports
from bridgehead.cluster.zookeeper import EmbeddedZooKeeper
from judge.transaction_log import Transaction, read_transactions

NODE_EXISTS, BAD_VERSION = -110, -103
CONTAINER_FLAGS = 4


class _CreateContainer(Create):
    """A request that creates a container znode. It differs from kazoo's Create only in its type."""

    type = 19


@pytest.fixture
def server(tmp_path: Path) -> Iterator[EmbeddedZooKeeper]:
    """A server for one test, which may kill it. Its log begins at zxid 1."""
    started = EmbeddedZooKeeper(tmp_path / "zk", [Ports().choose()], java=find_java(), heap_mib=128)
    started.start()
    try:
        started.wait_until_serving()
        yield started
    finally:
        started.stop()


def _client(server: EmbeddedZooKeeper) -> KazooClient:
    client = KazooClient(server.connect, timeout=10)
    client.start(timeout=60)
    return client


def _end(client: KazooClient) -> None:
    client.stop()
    client.close()


def _log(server: EmbeddedZooKeeper) -> list[Transaction]:
    transactions = read_transactions(server.folder)
    assert [t.zxid for t in transactions] == list(range(1, len(transactions) + 1))
    return transactions


def test_every_kind_of_write_is_decoded(server: EmbeddedZooKeeper) -> None:
    """The test checks paths, data, versions, ephemeral znodes, sessions and errors."""
    client = _client(server)
    session = client.client_id[0]
    client.create("/plain", b"one")
    client.create("/with-stat", b"two", include_data=True)
    client.create("/mortal", b"", ephemeral=True)
    numbered = client.create("/numbered-", b"", sequence=True)
    container = _CreateContainer("/container", b"c", OPEN_ACL_UNSAFE, CONTAINER_FLAGS)
    result = client.handler.async_result()
    client._call(container, result)
    result.get(timeout=60)
    client.set("/plain", b"three")
    client.set_acls("/plain", READ_ACL_UNSAFE)
    client.delete("/with-stat")
    with pytest.raises(NodeExistsError):
        client.create("/plain")
    created = {
        o.path: (o.data, o.ephemeral)
        for t in _log(server)
        for o in t.operations
        if o.kind == "create"
    }
    _end(client)
    assert created == {
        "/plain": (b"one", False),
        "/with-stat": (b"two", False),
        "/mortal": (b"", True),
        numbered: (b"", False),
        "/container": (b"c", False),
    }
    transactions = _log(server)
    others = [
        (t.kind, *((o.path, o.data, o.version, o.error) for o in t.operations))
        for t in transactions
        if t.kind not in ("create", "create_session")
    ]
    assert others == [
        ("set", ("/plain", b"three", 1, 0)),
        ("set_acl", ("/plain", None, -1, 0)),
        ("delete", ("/with-stat", None, -1, 0)),
        ("error", ("", None, -1, NODE_EXISTS)),
        ("close_session", ("/mortal", None, -1, 0)),
    ]
    assert {t.session for t in transactions} == {session}
    assert [t.failed for t in transactions if t.kind == "error"] == [True]


def test_applied_and_failed_multis_are_decoded(
    server: EmbeddedZooKeeper,
) -> None:
    """A decoded check has the version that it compared. A failed multi has only errors."""
    client = _client(server)
    client.create("/epoch", b"0")
    client.set("/epoch", b"1")
    for version in (1, 0):
        multi = client.transaction()
        multi.check("/epoch", version)
        multi.create(f"/effect-{version}", b"x", ephemeral=True)
        multi.set_data("/epoch", b"2", version=1)
        multi.delete("/epoch", version=2)
        multi.create("/epoch", b"3")
        multi.set_data("/epoch", b"4", version=0)
        results = multi.commit()
    assert isinstance(results[0], BadVersionError)
    _end(client)
    good, failed = [t for t in _log(server) if t.kind == "multi"]
    assert not good.failed
    assert [(o.kind, o.path, o.version) for o in good.operations] == [
        ("check", "/epoch", 1),
        ("create", "/effect-1", 0),
        ("set", "/epoch", 2),
        ("delete", "/epoch", -1),
        ("create", "/epoch", 0),
        ("set", "/epoch", 1),
    ]
    assert failed.failed
    assert {o.kind for o in failed.operations} == {"error"}
    assert failed.operations[0].error == BAD_VERSION


def test_a_killed_server_loses_no_acknowledged_write_and_its_log_continues(
    server: EmbeddedZooKeeper,
) -> None:
    """After three SIGKILLs under load, the server's files hold one history without a gap."""
    acknowledged = []
    for term in range(3):
        client = _client(server)
        pending = [client.create_async(f"/{term}-{n}", b"x" * 200) for n in range(300)]
        pending[100].get(timeout=60)
        pid = server.pid()
        assert pid is not None
        os.kill(pid, signal.SIGKILL)
        psutil.Process(pid).wait(timeout=60)
        _end(client)
        for result in pending:
            try:
                acknowledged.append(result.get(timeout=60))
            except KazooException:
                continue  # The connection broke before the reply.
        server.stop()
        server.start()
        server.wait_until_serving()
    created = {o.path for t in _log(server) for o in t.operations if o.kind == "create"}
    assert len(acknowledged) > 300
    assert created >= set(acknowledged)
    assert len(list((server.folder / "version-2").glob("log.*"))) > 1
