"""/controller is deleted or overwritten by hand: the active controller resigns at once."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator

import pytest
from confluent_kafka.admin import AdminClient, NewTopic
from kazoo.client import KazooClient

from bridgehead.cluster import Cluster
from tests.integration.secured import Secured

ACTIVE = "kafkacontroller_activecontrollercount"


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    with Cluster(brokers=3) as started:
        yield started


def delete(zookeeper: KazooClient) -> None:
    zookeeper.delete("/controller")


def delete_twice(zookeeper: KazooClient) -> None:
    """Again in the moment in which the next controller loads."""
    delete(zookeeper)
    while zookeeper.exists("/controller") is None:
        pass
    delete(zookeeper)


def name_another(zookeeper: KazooClient) -> None:
    """Broker 9 does not exist; the znode still belongs to the session of the controller."""
    data = zookeeper.get("/controller")[0].decode()
    zookeeper.set("/controller", data.replace('"brokerid":', '"brokerid":9').encode())


def spoil(zookeeper: KazooClient) -> None:
    zookeeper.set("/controller", b"{")


@pytest.mark.parametrize("change", [delete, name_another, spoil, delete_twice])
def test_the_active_controller_resigns_at_once(
    cluster: Cluster, change: Callable[[KazooClient], None]
) -> None:
    """After a second at most one node is active, then exactly one, of a new epoch."""
    cluster.wait_for_controller()
    pages = [each.metrics_url for each in cluster.brokers.values()]
    assert len(pages) == 3
    before = cluster.status()["controller_epoch"]
    zookeeper = KazooClient(cluster.zookeeper_connect)
    zookeeper.start(timeout=30)
    try:
        change(zookeeper)
        changed = time.monotonic()
    finally:
        zookeeper.stop()
        zookeeper.close()
    counts = []
    while (elapsed := time.monotonic() - changed) < 5:
        found = [Secured.metric_of(cluster, broker, ACTIVE) for broker in (1, 2, 3)]
        if elapsed > 1:
            counts.append(sum(found))
    assert max(counts) == 1.0 == counts[-1]
    assert cluster.status()["controller_epoch"] == before + 1 + (change is delete_twice)
    admin = AdminClient({"bootstrap.servers": cluster.bootstrap_servers})
    name = f"after-{before}"
    admin.create_topics([NewTopic(name, 1, 1)], request_timeout=60)[name].result()
