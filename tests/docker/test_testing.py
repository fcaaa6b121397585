"""`bridgehead.testing`: clusters in containers, as users' test suites start them."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator

import pytest

from bridgehead.testing import BridgeheadCluster, BridgeheadContainer
from demo.clients import admin, create_topic
from tests.integration.admin_clients import ConfluentAdmin

pytestmark = [pytest.mark.docker, pytest.mark.timeout(600)]


def there() -> set[str]:
    """Every container, volume and network of the engine."""
    kinds = (("ps", "--all"), ("volume", "ls"), ("network", "ls"))
    return {
        line
        for kind in kinds
        for line in subprocess.run(
            ["docker", *kind, "--quiet"], capture_output=True, check=True, text=True
        ).stdout.split()
    }


@pytest.fixture
def everything_is_removed(images: None) -> Iterator[None]:
    """What was there before is what is there afterwards."""
    before = there()
    yield
    assert there() - before == set()


def test_one_container_runs_several_brokers(everything_is_removed: None) -> None:
    """Each on its own port of the host."""
    with BridgeheadContainer().with_brokers(2).with_property("num.partitions", "5") as container:
        servers = container.get_bootstrap_server().split(",")
        assert len(servers) == 2
        for server in servers:
            client = ConfluentAdmin(server)
            client.create(f"at-{server.replace(':', '-')}", 1, 2, {})
            client.close()


def test_cluster_of_containers_survives_faults(everything_is_removed: None) -> None:
    """Kills the controller, pauses the next one and disconnects the third."""
    cluster = BridgeheadCluster().with_brokers(3)
    with cluster.with_property("zookeeper.session.timeout.ms", "2000"):
        client = admin(cluster.get_bootstrap_server())
        create_topic(client, "before", 1, 3)
        killed = cluster.kill_controller()
        second = cluster.wait_for_controller(other_than=killed)
        assert second != killed
        create_topic(client, "after-a-kill", 1, 2)
        cluster.get_container(killed).start()
        cluster.pause(second)
        third = cluster.wait_for_controller(other_than=second)
        cluster.unpause(second)
        cluster.disconnect(third)
        fourth = cluster.wait_for_controller(other_than=third)
        cluster.reconnect(third)
        assert cluster.wait_for_controller() == fourth
        create_topic(client, "after-all", 1, 3)
        assert {"before", "after-a-kill", "after-all"} <= set(client.list_topics(timeout=30).topics)


def test_exception_in_the_block_removes_everything(everything_is_removed: None) -> None:
    with pytest.raises(RuntimeError, match="of theirs"), BridgeheadCluster().with_brokers(1):
        raise RuntimeError("a mistake of theirs")
