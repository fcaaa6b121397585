"""Fixtures for a real ZooKeeper and for clusters of real or fake nodes.

`zookeeper` is a chroot for one test; the tests of a session share one ZooKeeper. `start_cluster`
starts clusters that stop when the test ends. `fake_node_command` runs `fake_node.py` as the node.
"""

from __future__ import annotations

import dataclasses
import itertools
import sys
from collections.abc import Callable, Generator, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from bridgehead.cluster import Cluster, class_archive
from bridgehead.cluster.java import find_java
from bridgehead.cluster.ports import Ports
from bridgehead.cluster.zookeeper import EmbeddedZooKeeper
from tests.integration.drafted_listeners import Listener
from tests.integration.processes import java_stacks
from tests.integration.zookeeper_peers import kazoo_client

StartCluster = Callable[..., Cluster]


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Add the stacks of our Java processes to the report of a test that exceeded its time limit."""
    report = yield
    if call.excinfo is not None and "from pytest-timeout" in str(call.excinfo.value):
        report.sections.extend(java_stacks())
    return report


@dataclasses.dataclass(frozen=True)
class ZooKeeperForTest:
    """A chroot for one test. `connect` is `hosts` + `chroot`; the chroot exists."""

    hosts: str
    chroot: str
    server: EmbeddedZooKeeper

    @property
    def connect(self) -> str:
        return self.hosts + self.chroot


@pytest.fixture(scope="session", autouse=True)
def _quick_zookeepers() -> None:
    """Let every embedded ZooKeeper start in half of the time, from an archive of its classes."""
    class_archive.main()


@pytest.fixture(scope="session")
def zookeeper_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EmbeddedZooKeeper]:
    """One embedded ZooKeeper for the pytest session."""
    folder = tmp_path_factory.mktemp("zookeeper")
    server = EmbeddedZooKeeper(folder, [Ports().choose()], java=find_java())
    server.start()
    try:
        server.wait_until_serving()
        yield server
    finally:
        server.stop()


@pytest.fixture(scope="session")
def new_chroot(zookeeper_server: EmbeddedZooKeeper) -> Callable[[], str]:
    """Each call returns a new chroot on `zookeeper_server`, for the option `zookeeper` of Cluster.

    A cluster that shares this server needs only two thirds of the processor time to start. A test
    needs an embedded server of its own if it judges evidence, or stops or inspects the server.
    """
    numbers = itertools.count(1)
    return lambda: f"{zookeeper_server.connect}/cluster-{next(numbers)}"


@pytest.fixture
def zookeeper(
    zookeeper_server: EmbeddedZooKeeper, new_chroot: Callable[[], str]
) -> ZooKeeperForTest:
    """An empty chroot on `zookeeper_server`."""
    chroot = new_chroot().removeprefix(zookeeper_server.connect)
    with kazoo_client(zookeeper_server.connect) as client:
        client.create(chroot)
    return ZooKeeperForTest(zookeeper_server.connect, chroot, zookeeper_server)


@pytest.fixture
def start_cluster() -> Iterator[StartCluster]:
    """`start_cluster(brokers=3, ...)` takes the arguments of `Cluster` and starts the cluster."""
    with ExitStack() as running:

        def start(**options: Any) -> Cluster:
            return running.enter_context(Cluster(**options))

        yield start


@pytest.fixture
def start_brokers(start_cluster: StartCluster, new_chroot: Callable[[], str]) -> StartCluster:
    """Like `start_cluster`, but the cluster uses `new_chroot`."""

    def start(**options: Any) -> Cluster:
        return start_cluster(zookeeper=new_chroot(), **options)

    return start


@pytest.fixture
def fake_node_command() -> tuple[str, ...]:
    """The `node_command` for clusters of fake nodes (`fake_node.py`)."""
    return (sys.executable, str(Path(__file__).with_name("fake_node.py")))


@pytest.fixture
def drafted(cluster: Cluster) -> Listener:
    """A raw client of the module's `cluster`, on the listener that speaks the KIPs' drafts."""
    return Listener(cluster, "drafted")


@pytest.fixture
def shipped(cluster: Cluster) -> Listener:
    """A raw client of the module's `cluster`, on the listener that speaks Kafka 3.9's protocol."""
    return Listener(cluster, "shipped")
