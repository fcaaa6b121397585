"""Real nodes under the real supervisor."""

from __future__ import annotations

from pathlib import Path

import pytest
from kafka import KafkaAdminClient
from kafka.admin import NewTopic

from bridgehead.cluster import Cluster, ClusterError
from bridgehead.cluster.zookeeper import EmbeddedZooKeeper
from tests.integration.conftest import StartCluster, ZooKeeperForTest
from tests.integration.zookeeper_peers import kazoo_client


def test_second_bridgehead_up_finds_the_metadata_of_the_first(
    tmp_path: Path, start_cluster: StartCluster
) -> None:
    """The two clusters use the same folder, but different ports."""
    first = start_cluster(data_dir=tmp_path)
    cluster_id = first.cluster_id
    admin = KafkaAdminClient(bootstrap_servers=first.bootstrap_servers.split(","))
    admin.create_topics([NewTopic("kept", 2, 3)])
    admin.close()
    first.stop()
    second = start_cluster(data_dir=tmp_path)
    admin = KafkaAdminClient(bootstrap_servers=second.bootstrap_servers.split(","))
    assert "kept" in admin.list_topics()
    admin.close()
    assert second.cluster_id == cluster_id


def test_controller_moves_to_every_broker(start_cluster: StartCluster) -> None:
    """Each move starts a new epoch. When the last target restarts, it is the controller again."""
    cluster = start_cluster(controller=2)
    assert cluster.controller_id() == 2
    epochs = []
    for target in (1, 2, 3):
        cluster.move_controller(target)
        assert cluster.controller_id() == target
        epochs.append(cluster.status()["controller_epoch"])
    assert epochs == sorted(set(epochs))
    cluster.stop_node(3)
    holder = cluster.wait_for_controller(other_than=3)
    cluster.start_node(3)
    assert cluster.wait_for_controller(other_than=holder) == 3


def test_killed_controller_is_replaced(start_cluster: StartCluster) -> None:
    """Another broker becomes active, and stays active when the killed broker restarts."""
    cluster = start_cluster(properties={"zookeeper.session.timeout.ms": "2000"})
    victim = cluster.kill_controller()
    successor = cluster.wait_for_controller(other_than=victim)
    cluster.start_node(victim)
    assert cluster.controller_id() == successor


def test_nodes_use_a_chroot_of_an_external_zookeeper(
    start_cluster: StartCluster, zookeeper_server: EmbeddedZooKeeper
) -> None:
    """The nodes create the chroot. `status` has no pid of ZooKeeper."""
    connect = f"{zookeeper_server.connect}/made/by/nodes"
    cluster = start_cluster(brokers=2, zookeeper=connect)
    assert cluster.zookeeper_connect == connect
    assert cluster.controller_id() in (1, 2)
    assert cluster.status()["zookeeper_pid"] is None


def test_a_node_that_cannot_read_a_znode_names_it(
    tmp_path: Path, zookeeper: ZooKeeperForTest
) -> None:
    with kazoo_client(zookeeper.connect) as client:
        client.create("/cluster/id", b"{", makepath=True)
    cluster = Cluster(brokers=1, data_dir=tmp_path / "c", zookeeper=zookeeper.connect)
    with pytest.raises(ClusterError, match="Broker 1 did not start: /cluster/id"):
        cluster.start()


def test_brokers_keep_their_logs_out_of_the_zookeeper_of_another_cluster(
    tmp_path: Path, start_cluster: StartCluster, zookeeper_server: EmbeddedZooKeeper
) -> None:
    """An emptied ZooKeeper stays empty: with new paths, other brokers would serve no topics."""
    mine, emptied, other = (f"{zookeeper_server.connect}/owner/{n}" for n in (1, 2, 3))
    cluster = start_cluster(brokers=1, data_dir=tmp_path / "mine", zookeeper=mine)
    admin = KafkaAdminClient(bootstrap_servers=cluster.bootstrap_servers.split(","))
    admin.create_topics([NewTopic("kept", 5, 1)])
    admin.close()
    cluster_id = cluster.cluster_id
    cluster.stop()
    logs = sorted(path.name for path in tmp_path.glob("mine/nodes/1/logs/kept-*"))
    stranger = start_cluster(brokers=1, data_dir=tmp_path / "other", zookeeper=other)
    for connect, named in ((emptied, "no cluster"), (other, f"cluster {stranger.cluster_id}")):
        moved = Cluster(brokers=1, data_dir=tmp_path / "mine", zookeeper=connect)
        with pytest.raises(ClusterError, match=f"ZooKeeper names {named}, but .* {cluster_id}: "):
            moved.start()
    with kazoo_client(zookeeper_server.connect) as client:
        assert client.exists("/owner/2/cluster") is None
    assert sorted(path.name for path in tmp_path.glob("mine/nodes/1/logs/kept-*")) == logs
