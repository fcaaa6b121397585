"""Each of two consistency settings prevents stale reads after a write; the defaults allow them.

Some tests write and read as the workload `read_after_write` does. In most tests, brokers 2 and 3
apply metadata late on purpose.
"""

from __future__ import annotations

import asyncio
import itertools
import os
import random
import signal
import threading
import time

import pytest
from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient, ConfigResource

from bridgehead.application import module_command
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
from chaos.workloads.read_after_write import WORKERS, Counts, delays, pairs, properties
from tests.integration.conftest import StartCluster
from tests.integration.test_internal_topics import RawClient

CREATE_TOPICS = 19
TIMED_OUT = 7
BROKER = 4


async def run(cluster: Cluster, count: int, *, kills: int = 0, seed: int = 1) -> Counts:
    """Write and read `count` pairs; meanwhile kill and restart `kills` controllers."""
    addresses = {broker: cluster.bootstrap_server(broker) for broker in cluster.brokers}
    counts, source = Counts(), random.Random(seed)
    # A write that is not acknowledged is replaced by another pair.
    numbers = itertools.takewhile(lambda _: counts.read < count, itertools.count())
    workers = [
        asyncio.create_task(pairs(addresses, numbers, counts, random.Random(source.random())))
        for _ in range(WORKERS)
    ]
    for kill in range(1, kills + 1):
        due = count * kill // (kills + 1)
        while counts.read < due and not all(w.done() for w in workers):
            await asyncio.sleep(0.02)
        killed = await asyncio.to_thread(cluster.kill_controller)
        await asyncio.to_thread(cluster.start_node, killed)
    await asyncio.gather(*workers)
    return counts


def a_cluster(
    start_brokers: StartCluster, blocking: str, reads: str, *command: str, factor: int = 1
) -> Cluster:
    """Start three brokers, two of which apply metadata late.

    The delay is `factor` times 20 ms at broker 2, and `factor` times 40 ms at broker 3.
    """
    return start_brokers(
        properties=properties(blocking, reads), node_properties=delays(factor), node_command=command
    )


@pytest.mark.long
@pytest.mark.parametrize(
    ("blocking", "reads"),
    [("cluster", "local"), ("controller", "controller")],
)
def test_no_read_is_stale_during_failover(
    start_brokers: StartCluster, blocking: str, reads: str
) -> None:
    """The controller is killed halfway and restarted."""
    counts = asyncio.run(run(a_cluster(start_brokers, blocking, reads), 600, kills=1))
    assert (counts.stale, counts.unfinished) == ([], [])
    assert counts.read >= 600


def test_default_consistency_allows_stale_reads(start_brokers: StartCluster) -> None:
    """As in Kafka, a write waits only for the controller, and a read uses the broker's cache."""
    counts = asyncio.run(run(a_cluster(start_brokers, "controller", "local", factor=10), 200))
    assert counts.read >= 200
    assert len(counts.stale) > 20


@pytest.mark.long
def test_controller_that_responds_too_early_is_detected(start_brokers: StartCluster) -> None:
    """The seeded bug ignores `bridgehead.metadata.blocking=cluster`."""
    mutant = module_command("chaos.mutant_node", "--mutants", "response_before_applied")
    counts = asyncio.run(run(a_cluster(start_brokers, "cluster", "local", *mutant, factor=10), 200))
    assert len(counts.stale) > 20


def created(client: RawClient, name: str, timeout_ms: int) -> int:
    """Create a topic; return its error code."""
    topic = CreatableTopic(name=name, num_partitions=1, replication_factor=1)
    message = CreateTopicsRequest(topics=[topic], timeout_ms=timeout_ms)
    (result,) = client.call(CREATE_TOPICS, 7, message)["topics"]
    return int(result["errorCode"])


def test_paused_broker_delays_writes_and_returns_nothing_stale(
    start_brokers: StartCluster,
) -> None:
    """No write is acknowledged before ZooKeeper expires the frozen broker's session.

    The first response of the resumed broker is not stale.
    """
    cluster = start_brokers(
        controller=1,
        properties={**properties("cluster", "local"), "request.timeout.ms": "20000"},
    )
    writer, reader = RawClient(cluster, 1), RawClient(cluster, 3)
    assert created(writer, "before", 10_000) == 0
    assert reader.topics("before")["before"]["errorCode"] == 0
    frozen = cluster.brokers[3].pid
    os.kill(frozen, signal.SIGSTOP)
    try:
        began = time.monotonic()
        assert created(writer, "too-soon", 300) == TIMED_OUT
        assert created(writer, "after", 15_000) == 0
        assert time.monotonic() - began > 1.0
        numbers: list[int] = []
        reading = threading.Thread(
            target=lambda: numbers.append(reader.topics("after")["after"]["errorCode"])
        )
        reading.start()
    finally:
        os.kill(frozen, signal.SIGCONT)
    reading.join(60)
    assert numbers == [0]


def test_alter_configs_is_bounded_by_request_timeout(start_brokers: StartCluster) -> None:
    """AlterConfigs has no timeout field, so `request.timeout.ms` applies."""
    cluster = start_brokers(
        controller=1,
        properties={
            **properties("cluster", "local"),
            "zookeeper.session.timeout.ms": "6000",
            "request.timeout.ms": "1500",
        },
    )
    admin = AdminClient({"bootstrap.servers": cluster.bootstrap_server(2)})
    assert created(RawClient(cluster, 1), "t", 30_000) == 0
    frozen = cluster.brokers[3].pid
    os.kill(frozen, signal.SIGSTOP)
    try:
        resource = ConfigResource("topic", "t", set_config={"retention.ms": "1000"})
        began = time.monotonic()
        with pytest.raises(KafkaException) as failed:
            admin.alter_configs([resource])[resource].result(60)
        # Without request.timeout.ms, the call would succeed when the frozen broker's session ends.
        assert failed.value.args[0].code() == TIMED_OUT
        assert time.monotonic() - began > 1.0
    finally:
        os.kill(frozen, signal.SIGCONT)


def test_deletion_gets_its_response_only_after_every_broker_has_removed_the_topic(
    start_brokers: StartCluster,
) -> None:
    cluster = a_cluster(start_brokers, "cluster", "local")
    clients = {broker: RawClient(cluster, broker) for broker in (1, 2, 3)}
    for number in range(15):
        name, writer = f"gone-{number}", clients[number % 3 + 1]
        assert created(writer, name, 10_000) == 0
        message = DeleteTopicsRequest(topics=[DeleteTopicState(name=name)], timeout_ms=10_000)
        (result,) = writer.call(20, 6, message)["responses"]
        assert result["errorCode"] == 0
        assert {client.topics(name)[name]["errorCode"] for client in clients.values()} == {3}


def test_config_change_gets_its_response_when_every_broker_has_it(
    start_brokers: StartCluster,
) -> None:
    """When the response arrives, every broker describes the new cluster default."""
    cluster = a_cluster(start_brokers, "cluster", "local")
    clients = {broker: RawClient(cluster, broker) for broker in (1, 2, 3)}
    for number in range(1, 16):
        config = AlterableConfig(name="log.retention.ms", value=str(number))
        default = AlterConfigsResource(resource_type=BROKER, resource_name="", configs=[config])
        response = clients[1].call(44, 1, IncrementalAlterConfigsRequest(resources=[default]))
        assert [row["errorCode"] for row in response["responses"]] == [0]
        for broker, client in clients.items():
            named = DescribeConfigsResource(BROKER, str(broker), ["log.retention.ms"])
            (described,) = client.call(32, 4, DescribeConfigsRequest(resources=[named]))["results"]
            assert [described_config["value"] for described_config in described["configs"]] == [
                str(number)
            ]
