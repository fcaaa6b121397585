"""Real Kafka brokers start with the ZooKeeper of stopped nodes and keep its metadata."""

from __future__ import annotations

import json
import time
from pathlib import Path

import pytest
from confluent_kafka import KafkaError, KafkaException, Producer
from confluent_kafka.admin import AdminClient

from tests.fidelity.real_kafka import kafka_brokers, reason_to_skip
from tests.integration.admin_clients import ConfluentAdmin
from tests.integration.conftest import StartCluster, ZooKeeperForTest
from tests.integration.processes import wait_until
from tests.integration.zookeeper_peers import kazoo_client

TOPICS = {"plain": (3, 3), "single": (4, 1), "changed": (2, 2)}


def led_partitions(admin: AdminClient) -> dict[str, int]:
    """Count the partitions of each topic that have a leader among the three brokers."""
    topics = admin.list_topics(timeout=60).topics
    return {
        name: sum(partition.leader in (1, 2, 3) for partition in topics[name].partitions.values())
        for name in TOPICS
        if name in topics
    }


def configs_once_known(admin: ConfluentAdmin, topic: str) -> dict[str, str]:
    """Return the topic's configs; retry while the broker does not know the topic yet."""
    deadline = time.monotonic() + 30
    while True:
        try:
            return dict(admin.configs(topic))
        except KafkaException as error:
            unknown = error.args[0].code() == KafkaError.UNKNOWN_TOPIC_OR_PART
            if not unknown or time.monotonic() > deadline:
                raise
            time.sleep(0.1)


@pytest.mark.kafka
@pytest.mark.long
def test_real_brokers_take_over_the_metadata_of_our_nodes(
    tmp_path: Path, start_cluster: StartCluster, zookeeper: ZooKeeperForTest
) -> None:
    """Partitions have leaders, and configs and the cluster id are kept.

    The controller epoch increases by one.
    """
    if reason := reason_to_skip():
        pytest.skip(reason)
    ours = start_cluster(zookeeper=zookeeper.connect)
    admin = ConfluentAdmin(ours.bootstrap_servers)
    for name, (partitions, replicas) in TOPICS.items():
        admin.create(name, partitions, replicas, {"retention.ms": "86400000"})
    admin.alter("changed", {"segment.bytes": "1048576"}, legacy=False)
    admin.create_partitions("changed", 5)
    admin.create("gone", 1, 1, {})
    admin.delete("gone")
    admin.close()
    cluster_id = ours.cluster_id
    ours.stop()

    with kazoo_client(zookeeper.connect) as client:
        epoch = int(client.get("/controller_epoch")[0])
        assert client.exists("/controller") is None
        with kafka_brokers(tmp_path / "kafka", zookeeper.connect, (1, 2, 3)) as bootstrap_servers:
            admin = AdminClient({"bootstrap.servers": bootstrap_servers})
            counts = {name: partitions for name, (partitions, _) in TOPICS.items()} | {"changed": 5}
            wait_until(lambda: led_partitions(admin), lambda value: value == counts)
            assert "gone" not in admin.list_topics(timeout=60).topics
            assert admin.describe_cluster().result(60).cluster_id == cluster_id
            assert json.loads(client.get("/controller")[0])["brokerid"] in (1, 2, 3)
            assert int(client.get("/controller_epoch")[0]) == epoch + 1

            kafkas = ConfluentAdmin(bootstrap_servers)
            configs = configs_once_known(kafkas, "changed")
            assert (configs["retention.ms"], configs["segment.bytes"]) == ("86400000", "1048576")
            kafkas.create_partitions("single", 6)
            kafkas.close()
            failed: list[object] = []
            producer = Producer({"bootstrap.servers": bootstrap_servers})
            for partition in range(counts["plain"]):
                producer.produce(
                    "plain",
                    b"x",
                    partition=partition,
                    on_delivery=lambda error, _: failed.append(error),
                )
            assert producer.flush(20) == 0
            assert failed == [None] * counts["plain"]
