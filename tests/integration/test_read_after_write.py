"""Whoever was told of success finds it at any broker, where that is asked for; else it is counted.

Read first: `chaos/read_after_write.py` makes the pairs; brokers 2 and 3 learn late on purpose.
`make read-after-write` does 10,000.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient, ConfigResource

from bridgehead.cluster import Cluster
from bridgehead.kafka_wire.messages.create_topics import CreatableTopic, CreateTopicsRequest
from bridgehead.kafka_wire.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState
from bridgehead.kafka_wire.messages.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
)
from bridgehead.kafka_wire.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from chaos.read_after_write import delays, properties, run
from tests.integration.test_internal_topics import Asker

StartCluster = Callable[..., Cluster]
MUTANT_NODE = Path(__file__).parent / "mutant_node.py"
CREATE_TOPICS = 19
TIMED_OUT = 7
BROKER = 4


def a_cluster(start_cluster: StartCluster, blocking: str, reads: str, *command: str) -> Cluster:
    """Three brokers, of which two learn late."""
    return start_cluster(
        properties=properties(blocking, reads), node_properties=delays(), node_command=command
    )


@pytest.mark.parametrize(
    ("blocking", "reads"), [("cluster", "local"), ("controller", "controller")]
)
def test_no_read_is_stale_whoever_fails(
    start_cluster: StartCluster, blocking: str, reads: str
) -> None:
    """A controller is killed half way and comes back."""
    counts = asyncio.run(run(a_cluster(start_cluster, blocking, reads), 600, kills=1))
    assert (counts.stale, counts.missing) == ([], [])
    assert counts.read >= 600


def test_kafkas_own_way_answers_stale_reads(start_cluster: StartCluster) -> None:
    """The write waits for the controller alone, and a read is answered from what is there."""
    counts = asyncio.run(run(a_cluster(start_cluster, "controller", "local"), 200))
    assert counts.read >= 200
    assert len(counts.stale) > 20


def test_a_controller_that_answers_too_soon_is_noticed(start_cluster: StartCluster) -> None:
    """The seeded bug: blocking by the whole cluster is configured and not done."""
    mutant = (sys.executable, str(MUTANT_NODE), "--mutants", "answer_before_applied")
    counts = asyncio.run(run(a_cluster(start_cluster, "cluster", "local", *mutant), 200))
    assert len(counts.stale) > 20


def created(asker: Asker, name: str, timeout_ms: int) -> int:
    """Return the code of one topic's creation."""
    topic = CreatableTopic(name=name, num_partitions=1, replication_factor=1)
    message = CreateTopicsRequest(topics=[topic], timeout_ms=timeout_ms)
    (result,) = asker.ask(CREATE_TOPICS, 7, message)["topics"]
    return int(result["errorCode"])


def test_a_broker_that_is_not_heard_of_is_waited_for_and_answers_nothing_old(
    start_cluster: StartCluster,
) -> None:
    """Frozen: writes time out until ZooKeeper has dropped it; thawed, its first answer is new."""
    cluster = start_cluster(
        controller=1,
        properties={**properties("cluster", "local"), "request.timeout.ms": "20000"},
    )
    writer, reader = Asker(cluster, 1), Asker(cluster, 3)
    assert created(writer, "before", 10_000) == 0
    assert reader.topics("before")["before"]["errorCode"] == 0
    frozen = cluster.brokers[3].pid
    os.kill(frozen, signal.SIGSTOP)
    try:
        began = time.monotonic()
        assert created(writer, "too-soon", 300) == TIMED_OUT
        assert created(writer, "after", 15_000) == 0
        assert time.monotonic() - began > 1.0
        found: list[int] = []
        asking = threading.Thread(
            target=lambda: found.append(reader.topics("after")["after"]["errorCode"])
        )
        asking.start()
    finally:
        os.kill(frozen, signal.SIGCONT)
    asking.join(60)
    assert found == [0]


def test_an_alteration_is_bounded_by_the_brokers_own_time(start_cluster: StartCluster) -> None:
    """AlterConfigs knows no timeout: `request.timeout.ms` is its bound."""
    cluster = start_cluster(
        controller=1,
        properties={
            **properties("cluster", "local"),
            "zookeeper.session.timeout.ms": "6000",
            "request.timeout.ms": "1500",
        },
    )
    admin = AdminClient({"bootstrap.servers": cluster.bootstrap_server(2)})
    assert created(Asker(cluster, 1), "t", 30_000) == 0
    frozen = cluster.brokers[3].pid
    os.kill(frozen, signal.SIGSTOP)
    try:
        resource = ConfigResource("topic", "t", set_config={"retention.ms": "1000"})
        began = time.monotonic()
        with pytest.raises(KafkaException) as refused:
            admin.alter_configs([resource])[resource].result(60)
        # Not bounded, it would have succeeded once ZooKeeper had dropped the broker.
        assert refused.value.args[0].code() == TIMED_OUT
        assert time.monotonic() - began > 1.0
    finally:
        os.kill(frozen, signal.SIGCONT)


def test_a_deleted_topic_is_gone_everywhere_when_it_is_told(start_cluster: StartCluster) -> None:
    """Deletion is done after it was accepted; its answer waits for both."""
    cluster = a_cluster(start_cluster, "cluster", "local")
    askers = {broker: Asker(cluster, broker) for broker in (1, 2, 3)}
    for number in range(15):
        name, writer = f"gone-{number}", askers[number % 3 + 1]
        assert created(writer, name, 10_000) == 0
        message = DeleteTopicsRequest(topics=[DeleteTopicState(name=name)], timeout_ms=10_000)
        (result,) = writer.ask(20, 6, message)["responses"]
        assert result["errorCode"] == 0
        assert {asker.topics(name)[name]["errorCode"] for asker in askers.values()} == {3}


def test_what_zookeeper_notifies_of_is_known_everywhere_too(start_cluster: StartCluster) -> None:
    """The default of all brokers, changed through one, is in force at the others by then."""
    cluster = a_cluster(start_cluster, "cluster", "local")
    askers = {broker: Asker(cluster, broker) for broker in (1, 2, 3)}
    for number in range(1, 16):
        config = AlterableConfig(name="log.retention.ms", value=str(number))
        default = AlterConfigsResource(resource_type=BROKER, resource_name="", configs=[config])
        answer = askers[1].ask(44, 1, IncrementalAlterConfigsRequest(resources=[default]))
        assert [each["errorCode"] for each in answer["responses"]] == [0]
        for broker, asker in askers.items():
            named = DescribeConfigsResource(BROKER, str(broker), ["log.retention.ms"])
            (told,) = asker.ask(32, 4, DescribeConfigsRequest(resources=[named]))["results"]
            assert [each["value"] for each in told["configs"]] == [str(number)]
