"""Compares the same jobs on a forwarding Kafka 3.9.1 and on our cluster, in one run.

Each cluster has three brokers and its own ZooKeeper. In each round, each cluster gets all requests
from one confluent-kafka AdminClient. Skipped without Kafka's jars (`make kafka-jars`) or Java 17
to 23.
"""

from __future__ import annotations

import asyncio
import tempfile
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from pathlib import Path
from typing import Any

from confluent_kafka.admin import (
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    NewPartitions,
    NewTopic,
)

from bench.report import Plan, median, progress
from bridgehead.cluster import Cluster
from bridgehead.cluster.java import find_java
from bridgehead.cluster.ports import Ports
from bridgehead.cluster.zookeeper import EmbeddedZooKeeper
from bridgehead.kafka_wire.messages.metadata import MetadataRequest
from bridgehead.raw_client.asynchronous import AsyncConnection
from tests.fidelity.real_kafka import kafka_brokers, reason_to_skip

_SET = AlterConfigOpType.SET
_OUTSTANDING = 64
_REPLICAS = 3
_TOPICS = 128
Call = Callable[[str], Mapping[Any, Future[Any]]]


def _rate(names: Sequence[str], call: Call) -> float:
    """Call `call` once for each name, up to 64 at a time; return the calls per second."""
    began = time.perf_counter()
    outstanding: deque[Future[Any]] = deque()
    for name in names:
        if len(outstanding) == _OUTSTANDING:
            outstanding.popleft().result()
        outstanding.extend(call(name).values())
    for future in outstanding:
        future.result()
    return len(names) / (time.perf_counter() - began)


def _measure(bootstrap: str, prefix: str) -> dict[str, float]:
    """Return the rate of each job."""
    admin = AdminClient({"bootstrap.servers": bootstrap})
    admin.list_topics(timeout=60)  # connects before the first job
    names = [f"{prefix}-{number}" for number in range(_TOPICS)]
    bulk = [NewTopic(f"{name}-bulk", 1, _REPLICAS) for name in names]

    def config(name: str) -> Mapping[Any, Future[Any]]:
        value = ConfigEntry("retention.ms", "1000000", incremental_operation=_SET)
        resource = ConfigResource(ConfigResource.Type.TOPIC, name, incremental_configs=[value])
        return admin.incremental_alter_configs([resource])

    jobs: dict[str, Call] = {
        "small creates": lambda name: admin.create_topics([NewTopic(name, 1, _REPLICAS)]),
        "IncrementalAlterConfigs": config,
        "CreatePartitions": lambda name: admin.create_partitions([NewPartitions(name, 2)]),
        "small deletes": lambda name: admin.delete_topics([name]),
    }
    rates = {job: _rate(names, call) for job, call in jobs.items()}
    for job, calls in (
        (f"{_TOPICS} topics in one CreateTopics", lambda: admin.create_topics(bulk)),
        (
            f"{_TOPICS} topics in one DeleteTopics",
            lambda: admin.delete_topics([topic.topic for topic in bulk], operation_timeout=60),
        ),
    ):
        began = time.perf_counter()
        for call in calls().values():
            call.result()
        rates[job] = _TOPICS / (time.perf_counter() - began)
    return rates


async def _wait_for_controller(bootstrap: str) -> None:
    """Wait until a broker knows a controller and all brokers."""
    connection = await AsyncConnection.open(bootstrap.split(",")[0])
    while True:
        metadata = await connection.call(3, 12, MetadataRequest(topics=[]))
        if metadata.controller_id >= 0 and len(metadata.brokers) == _REPLICAS:
            connection.close()
            return
        await asyncio.sleep(0.1)


def run(plan: Plan) -> list[str]:
    """Measure all jobs on both clusters, in turns."""
    reason = reason_to_skip()
    if reason is not None:
        return [f"SKIPPED: {reason}"]
    with tempfile.TemporaryDirectory(prefix="bench-") as folder:
        zookeeper = EmbeddedZooKeeper(Path(folder) / "zk", [Ports().choose()], java=find_java())
        zookeeper.start()
        try:
            zookeeper.wait_until_serving()
            progress("real-kafka: starting three brokers of Kafka 3.9.1")
            brokers = Path(folder) / "kafka"
            with (
                kafka_brokers(brokers, zookeeper.connect, (1, 2, 3), forwarding=True) as theirs,
                Cluster(brokers=3) as ours,
            ):
                asyncio.run(_wait_for_controller(theirs))
                return _compare(plan, theirs, ours.bootstrap_servers)
        finally:
            zookeeper.stop()


def _compare(plan: Plan, theirs: str, ours: str) -> list[str]:
    rates: dict[str, list[dict[str, float]]] = {theirs: [], ours: []}
    for round_ in range(plan.rounds(4)):
        progress(f"real-kafka: round {round_ + 1}")
        for bootstrap, measured in rates.items():
            measured.append(_measure(bootstrap, f"round{round_}"))
    lines = []
    for job in rates[ours][0]:
        rate, their_rate = (
            median([measured[job] for measured in rates[side]]) for side in (ours, theirs)
        )
        lines.append(
            f"{job}: {rate / their_rate:.0f} times a real Kafka's rate "
            f"({rate:.0f}/s against {their_rate:.1f}/s)"
        )
    return lines
