"""Bridgehead's pytest plug-in starts the cluster; each test gets it like new."""

import time

import pytest
from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient

from topics import ensure_topic


@pytest.fixture(scope="session")
def bridgehead_cluster_options():
    return {"brokers": 3, "properties": {"zookeeper.session.timeout.ms": "2000"}}


@pytest.fixture
def admin(bridgehead_cluster):
    # By default the client looks for the controller only every five minutes.
    refresh = {"topic.metadata.refresh.interval.ms": 1000}
    return AdminClient({"bootstrap.servers": bridgehead_cluster.bootstrap_servers, **refresh})


def test_topic_is_created_while_the_controller_dies(admin, bridgehead_cluster):
    bridgehead_cluster.kill_controller()
    ensure_topic(admin, "orders", 3)
    deadline = time.monotonic() + 10
    # The broker that is asked may learn of the topic a moment after the controller.
    while "orders" not in (topics := admin.list_topics().topics) and time.monotonic() < deadline:
        time.sleep(0.1)
    assert len(topics["orders"].partitions) == 3


def test_rejected_request_is_repeated(admin, bridgehead_cluster):
    rule = bridgehead_cluster.faults.add("error", error="NOT_CONTROLLER", api="CreateTopics")
    ensure_topic(admin, "orders", 3)
    assert bridgehead_cluster.faults.hits(rule) >= 1


def test_other_errors_are_not_hidden(admin):
    with pytest.raises(KafkaException, match="INVALID_PARTITIONS"):
        ensure_topic(admin, "orders", 0)
