"""`up --zookeeper` on another cluster's ZooKeeper: rejected, copied, or adopted."""

from __future__ import annotations

import json
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from confluent_kafka.admin import AdminClient, NewTopic
from kazoo.exceptions import NoNodeError

from bridgehead.cluster import Cluster
from bridgehead.exit_codes import ExitCode
from tests.integration.test_supervision import command
from tests.integration.zookeeper_peers import kazoo_client


@pytest.fixture
def up(tmp_path: Path) -> Iterator[Callable[..., subprocess.CompletedProcess[str]]]:
    """Run `bridgehead up --detach` with one broker in a folder; stop it at the end."""
    folders = set()

    def start(folder: str, *options: str) -> subprocess.CompletedProcess[str]:
        folders.add(folder)
        one = ("--brokers=1", "--ports=auto", "--json", f"--data-dir={tmp_path / folder}")
        return command("up", "--detach", *one, *options)

    yield start
    for folder in folders:
        command("down", "--data-dir", str(tmp_path / folder))


def topics(started: subprocess.CompletedProcess[str]) -> set[str]:
    assert started.returncode == 0, started.stderr
    servers = json.loads(started.stdout)["bootstrap_servers"]
    return set(AdminClient({"bootstrap.servers": servers}).list_topics().topics)


def znodes(connect: str) -> dict[str, bytes]:
    """Return the data of all znodes below a chroot."""
    hosts, _, chroot = connect.partition("/")
    with kazoo_client(hosts) as client:
        paths, parents = [], [f"/{chroot}"]
        while parents:
            parents = [f"{p}/{c}" for p in parents for c in client.get_children(p)]
            paths += parents
        return {path: client.get(path)[0] for path in paths}


def znodes_of_an_idle_cluster(connect: str) -> dict[str, bytes]:
    """Return the znodes once the controller has pruned its outcomes; then it writes nothing."""
    deadline = time.monotonic() + 30
    while True:
        try:
            data = znodes(connect)
        except NoNodeError:  # It was pruned between the listing and the reading.
            data = {}
        if any("/bridgehead/floors/" in path for path in data):
            return data
        assert time.monotonic() < deadline, "the controller pruned nothing"
        time.sleep(0.1)


def test_metadata_of_another_cluster_are_rejected_copied_and_adopted(
    new_chroot: Callable[[], str],
    tmp_path: Path,
    up: Callable[..., subprocess.CompletedProcess[str]],
) -> None:
    connect = new_chroot()
    with Cluster(brokers=1, zookeeper=connect) as theirs:
        admin = AdminClient({"bootstrap.servers": theirs.bootstrap_servers})
        admin.create_topics([NewTopic("orders", 7, 1)])["orders"].result(30)
        alive = up("mine", "--zookeeper", connect, "--adopt")
        assert alive.returncode == ExitCode.CANNOT_RUN
        assert "whose brokers 1 are registered: stop them first" in alive.stderr
        before = znodes_of_an_idle_cluster(connect)
        copied = up("copy", "--zookeeper", connect, "--read-only")
        assert topics(copied) == {"orders"}
        mine = AdminClient({"bootstrap.servers": json.loads(copied.stdout)["bootstrap_servers"]})
        mine.create_topics([NewTopic("of-the-copy", 1, 1)])["of-the-copy"].result(30)
        assert znodes(connect) == before
    command("down", "--data-dir", str(tmp_path / "copy"))
    again = up("copy", "--zookeeper", connect, "--read-only")  # the copy of the first start
    assert topics(again) == {"orders", "of-the-copy"}

    rejected = up("mine", "--zookeeper", connect)
    assert rejected.returncode == ExitCode.CANNOT_RUN
    assert "(1 topics): --adopt" in rejected.stderr
    assert topics(up("mine", "--zookeeper", connect, "--adopt")) == {"orders"}
    command("down", "--data-dir", str(tmp_path / "mine"))
    assert topics(up("mine", "--zookeeper", connect)) == {"orders"}  # It is the owner now.


def test_a_zookeeper_without_a_cluster_is_used_but_not_copied(
    new_chroot: Callable[[], str], up: Callable[..., subprocess.CompletedProcess[str]]
) -> None:
    connect = new_chroot()
    nothing = up("copy", "--zookeeper", connect, "--read-only")
    assert nothing.returncode == ExitCode.CANNOT_RUN
    assert "There is no /cluster/id" in nothing.stderr
    assert topics(up("new", "--zookeeper", connect)) == set()
