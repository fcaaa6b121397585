"""`bridgehead.testing`: clusters in containers, as users' test suites start them."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator

import pytest
from testcontainers.core.config import testcontainers_config
from testcontainers.core.labels import LABEL_SESSION_ID, SESSION_ID

from bridgehead.cluster import ClusterError
from bridgehead.testing import BridgeheadCluster, BridgeheadContainer
from bridgehead.testing.engine import prepare
from demo.clients import admin, create_topic
from tests.docker.compose import wait_until
from tests.integration.admin_clients import ConfluentAdmin

# The channel of broker 2 as broker 1 sees it: TLS, with a certificate of the cluster's authority.
HANDSHAKE = """
import socket, ssl
context = ssl.create_default_context(cafile="/secrets/channel/ca.pem")
context.load_cert_chain("/secrets/channel/broker-1.pem", "/secrets/channel/broker-1.key")
plain = socket.create_connection(("kafka-2", 9095), 5)
with context.wrap_socket(plain, server_hostname="broker-2.bridgehead") as channel:
    subject = dict(part[0] for part in channel.getpeercert()["subject"])
    print(f"User:{subject['commonName']}'s certificate")
"""
pytestmark = [pytest.mark.docker, pytest.mark.timeout(600)]


def objects_of_this_process() -> set[str]:
    """Return the containers and networks of this process, and volumes that no container uses."""
    label = f"--filter=label={LABEL_SESSION_ID}={SESSION_ID}"
    kinds = (
        ("ps", "--all", label),
        ("network", "ls", label),
        ("volume", "ls", "--filter=dangling=true"),
    )
    return {
        line
        for kind in kinds
        for line in subprocess.run(
            ["docker", *kind, "--quiet"], capture_output=True, check=True, text=True
        ).stdout.split()
    }


@pytest.fixture
def everything_is_removed(images: None) -> Iterator[None]:
    """After the test the engine has no new object."""
    before = objects_of_this_process()
    yield
    # A test of another worker may be removing the containers of its volumes just now.
    wait_until(lambda: objects_of_this_process() <= before, "the removal of all objects")


def test_one_container_runs_several_brokers(everything_is_removed: None) -> None:
    """Each broker has its own port on the host. The controller is killed and started again."""
    container = BridgeheadContainer().with_brokers(2).with_property("num.partitions", "5")
    with container.with_property("zookeeper.session.timeout.ms", "2000"):
        servers = container.get_bootstrap_server().split(",")
        assert len(servers) == 2
        for server in servers:
            client = ConfluentAdmin(server)
            client.create(f"at-{server.replace(':', '-')}", 1, 2, {})
            client.close()
        killed = container.kill_controller()
        assert container.wait_for_controller(other_than=killed) == 3 - killed
        container.start_broker(killed)
        assert container.get_controller() == 3 - killed


def test_ryuk_is_disabled_if_its_image_cannot_be_pulled(
    engine: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A warning names the image, and the command that removes what killed tests leave behind."""
    monkeypatch.setattr(testcontainers_config, "_ryuk_disabled", False)
    monkeypatch.setattr(testcontainers_config, "ryuk_image", "127.0.0.1:1/no/ryuk:1")
    with pytest.warns(UserWarning, match=r"127\.0\.0\.1:1/no/ryuk:1 is not here.*docker rm"):
        prepare()
    assert testcontainers_config.ryuk_disabled


def test_missing_image_is_named(engine: None) -> None:
    container = BridgeheadContainer("bridgehead-absent:latest")
    with pytest.raises(ClusterError, match="no image bridgehead-absent:latest: run `make image`"):
        container.start()


def test_channel_between_brokers_has_tls(everything_is_removed: None) -> None:
    with BridgeheadCluster().with_brokers(2) as cluster:
        status, output = cluster.get_container(1).exec_run(
            ["/opt/bridgehead/bin/python", "-c", HANDSHAKE]
        )
        assert (status, output.decode()) == (0, "User:broker's certificate\n"), output


def test_cluster_of_containers_survives_faults(everything_is_removed: None) -> None:
    """The test kills the controller, pauses its successor and disconnects the third controller."""
    cluster = BridgeheadCluster().with_brokers(3)
    with cluster.with_property("zookeeper.session.timeout.ms", "2000"):
        client = admin(cluster.get_bootstrap_server())
        create_topic(client, "before", 1, 3)
        killed = cluster.kill_controller()
        second = cluster.wait_for_controller(other_than=killed)
        assert second != killed
        create_topic(client, "after-a-kill", 1, 2)
        cluster.start_broker(killed)
        cluster.pause(second)
        third = cluster.wait_for_controller(other_than=second)
        cluster.unpause(second)
        cluster.disconnect(third)
        fourth = cluster.wait_for_controller(other_than=third)
        cluster.reconnect(third)
        assert cluster.wait_for_controller() == fourth
        create_topic(client, "after-all", 1, 3)
        topics = {"before", "after-a-kill", "after-all"}
        # As in Kafka, a broker that was just reconnected may answer with older metadata.
        wait_until(lambda: topics <= set(client.list_topics(timeout=30).topics), f"all of {topics}")


def test_exception_in_the_block_removes_everything(everything_is_removed: None) -> None:
    with pytest.raises(RuntimeError, match="of theirs"), BridgeheadCluster().with_brokers(1):
        raise RuntimeError("a mistake of theirs")
