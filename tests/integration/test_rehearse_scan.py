"""Scan and dump only read a real ZooKeeper; ensemble, files and dump have the same tree."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka.admin import AdminClient, NewTopic
from kazoo.security import make_digest_acl

from bridgehead.cluster import Cluster
from bridgehead.cluster.java import find_java
from bridgehead.cluster.ports import Ports
from bridgehead.cluster.zookeeper import EmbeddedZooKeeper
from judge.transaction_log import Transaction, read_transactions
from rehearse.seeds import SEEDS, healthy
from rehearse.sources import ensemble as ensemble_source
from rehearse.sources.ensemble import read_ensemble
from rehearse.sources.snapshot import read_snapshot
from rehearse.znodes import Hidden, SourceError, ZnodeTree
from tests.integration.zookeeper_peers import kazoo_client

COMMAND = [sys.executable, "-m", "bridgehead.cli.main"]
BY_NAME = {seed.name: seed for seed in SEEDS}
CREDENTIAL = "kafka:a-secret"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EmbeddedZooKeeper]:
    """A ZooKeeper to which nothing else writes."""
    folder = tmp_path_factory.mktemp("zookeeper")
    server = EmbeddedZooKeeper(folder, [Ports().choose()], java=find_java())
    server.start()
    try:
        server.wait_until_serving()
        yield server
    finally:
        server.stop()


def plant(server: EmbeddedZooKeeper, chroot: str, tree: ZnodeTree) -> str:
    """Write a tree below a chroot; return the address."""
    with kazoo_client(server.connect) as client:
        client.ensure_path(chroot)
        for path, znode in sorted(tree.znodes.items()):
            client.create(f"{chroot}{path}", znode.data)
    return f"{server.connect}{chroot}"


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([*COMMAND, *arguments], capture_output=True, text=True, timeout=120)


def later(server: EmbeddedZooKeeper, zxid: int) -> list[Transaction]:
    """Return the transactions after `zxid` that the server has written to its disk."""
    return [t for t in read_transactions(server.folder) if t.zxid > zxid]


def rules(output: str) -> set[str]:
    return {finding["rule"] for finding in json.loads(output)["findings"]}


def test_scan_and_dump_write_nothing(server: EmbeddedZooKeeper, tmp_path: Path) -> None:
    """ZooKeeper counts the sessions of its readers as transactions: there are no others."""
    address = plant(server, "/read-only", BY_NAME["quota_unknown"].planted(healthy()))
    zxid = max(transaction.zxid for transaction in read_transactions(server.folder))
    before = read_snapshot(server.folder, "/read-only")
    scanned = run("rehearse", "scan", "--zookeeper", address, "--json")
    assert scanned.returncode == 1, scanned.stderr
    assert "quota-unknown" in rules(scanned.stdout)
    dump = str(tmp_path / "dump")
    dumped = run("zookeeper", "dump", "--zookeeper", address, "--to", dump)
    assert dumped.returncode == 0, dumped.stderr
    assert dumped.stdout == (
        f"{dump}: {len(before.znodes):,} znodes.\n"
        "Secrets of 3 znodes are left out; --seal KEYFILE keeps them.\n"
    )
    transactions = later(server, zxid)
    kinds = [transaction.kind for transaction in transactions]
    assert (set(kinds), kinds.count("create_session")) == ({"create_session", "close_session"}, 2)
    assert [operation for t in transactions for operation in t.operations] == []
    assert read_snapshot(server.folder, "/read-only").znodes == before.znodes


def test_snapshot_scan_opens_no_session(server: EmbeddedZooKeeper) -> None:
    plant(server, "/files", BY_NAME["acl_version"].planted(healthy()))
    zxid = max(transaction.zxid for transaction in read_transactions(server.folder))
    options = ("--snapshot", str(server.folder), "--chroot", "/files", "--json")
    scanned = run("rehearse", "scan", *options)
    assert scanned.returncode == 1, scanned.stderr
    assert "acl-odd" in rules(scanned.stdout)
    assert later(server, zxid) == []
    assert json.loads(scanned.stdout)["zxid"] == zxid


def test_ensemble_files_and_dump_have_the_same_tree(
    server: EmbeddedZooKeeper, tmp_path: Path
) -> None:
    address = plant(server, "/same", healthy())
    with kazoo_client(address) as client:
        client.set("/brokers/topics/orders", b"\xff\x00 not text")
        client.set("/controller_epoch", b"8")
        client.delete("/config/ips/10.1.2.3")
        client.set_acls("/config/users", [make_digest_acl("kafka", "a-secret", read=True)])
        client.create("/brokers/ids/9", b"{}", ephemeral=True)
        client.create("/unrelated", b"of another program")
        ensemble = asyncio.run(read_ensemble(address))
        files = read_snapshot(server.folder, "/same")
    assert ensemble.is_one_state
    assert ensemble.zxid is not None
    assert files.zxid == ensemble.zxid + 1  # the end of the reading session
    assert "/unrelated" not in ensemble
    assert ensemble.znodes["/brokers/ids/9"].ephemeral
    assert ensemble.data("/brokers/topics/orders") == b"\xff\x00 not text"
    # This session may not read /config/users, nor see what is below.
    assert ensemble.znodes["/config/users"].hidden is Hidden.NO_AUTH
    readable = {path for path in files.znodes if not path.startswith("/config/users")}
    assert readable == set(ensemble.znodes) - {"/config/users"}
    for path in readable:
        assert ensemble.znodes[path] == files.znodes[path], path
    key, dump = tmp_path / "key", tmp_path / "dump"
    options = ("--snapshot", str(server.folder), "--chroot", "/same", "--to", str(dump))
    assert run("zookeeper", "dump", *options, "--seal", str(key)).returncode == 0
    one, other = (
        run("rehearse", "scan", "--json", *source)
        for source in (
            ("--dump", str(dump), "--key", str(key)),
            ("--snapshot", str(server.folder), "--chroot", "/same"),
        )
    )
    assert json.loads(one.stdout)["findings"] == json.loads(other.stdout)["findings"] != []


def test_denied_znodes_are_named_and_readable_with_the_credential(
    server: EmbeddedZooKeeper, tmp_path: Path
) -> None:
    address = plant(server, "/denied", healthy())
    with kazoo_client(address) as client:
        for path in ("/brokers/topics/orders", "/config/users/alice"):
            client.set_acls(path, [make_digest_acl("kafka", "a-secret", all=True)])
    denied = run("rehearse", "scan", "--zookeeper", address, "--json")
    (finding,) = [f for f in json.loads(denied.stdout)["findings"] if f["rule"] == "access-denied"]
    assert finding["detail"] == "2 znodes cannot be read with these credentials"
    properties = tmp_path / "server.properties"
    properties.write_text(
        f"broker.id=1\nbridgehead.zookeeper.broker.credential={CREDENTIAL}\n"
        "zookeeper.metadata.migration.enable=true\ncontroller.quorum.voters=9@h:1\n"
        "controller.listener.names=C\nlistener.security.protocol.map=C:PLAINTEXT\n"
    )
    options = ("--server-properties", str(properties), "--json")
    allowed = run("rehearse", "scan", "--zookeeper", address, *options)
    assert {"access-denied"} <= rules(denied.stdout)
    assert rules(allowed.stdout) == {"access-restricted", "broker-stale", "tokens-without-key"}
    for output in (allowed.stdout, allowed.stderr, denied.stdout):
        assert "a-secret" not in output


def test_changing_ensemble_is_said_to_change(server: EmbeddedZooKeeper) -> None:
    address = plant(server, "/busy", healthy())
    stopped = threading.Event()

    def write() -> None:
        with kazoo_client(address) as client:
            while not stopped.is_set():
                client.set("/controller_epoch", b"7")

    writer = threading.Thread(target=write)
    writer.start()
    try:
        tree = asyncio.run(read_ensemble(address))
    finally:
        stopped.set()
        writer.join(30)
    assert not tree.is_one_state
    assert tree.znodes.keys() == healthy().znodes.keys()


@pytest.mark.parametrize("address", ["127.0.0.1:1", "127.0.0.1:notaport", ""])
def test_no_zookeeper_is_one_sentence(address: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ensemble_source, "_OPEN_TIMEOUT_S", 1.0)
    with pytest.raises(SourceError, match=f"{address}: ."):
        asyncio.run(read_ensemble(address))


def test_missing_chroot_is_one_sentence(server: EmbeddedZooKeeper) -> None:
    scanned = run("rehearse", "scan", "--zookeeper", f"{server.connect}/nowhere")
    assert scanned.returncode == 4
    assert scanned.stderr == (
        f"{server.connect}/nowhere: there is no /nowhere in this ZooKeeper.\n"
    )


def test_znodes_of_a_bridgehead_cluster_have_no_finding(server: EmbeddedZooKeeper) -> None:
    address = f"{server.connect}/bridgehead"
    properties = {"authorizer.class.name": "kafka.security.authorizer.AclAuthorizer"}
    properties |= {"allow.everyone.if.no.acl.found": "true"}
    with Cluster(brokers=3, zookeeper=address, properties=properties) as cluster:
        admin = AdminClient({"bootstrap.servers": cluster.bootstrap_servers})
        topics = [NewTopic("orders", 3, 3, config={"retention.ms": "77"}), NewTopic("audit", 2, 2)]
        for future in admin.create_topics(topics).values():
            future.result(30)
        scanned = run("rehearse", "scan", "--zookeeper", address, "--json")
    document = json.loads(scanned.stdout)
    assert (scanned.returncode, document["findings"]) == (0, [])
    assert document["not_checked"]
