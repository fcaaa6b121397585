"""Compares the same jobs on a forwarding Kafka 3.9.1 and on our cluster, in one run.

Both clusters have three brokers and their own ZooKeeper; requests go to a broker that is not the
controller. Skipped without Kafka's jars (`make kafka-jars`) or Java 17.
"""

from __future__ import annotations

import asyncio
import tempfile
import time
from pathlib import Path

from bench.forwarding import check_created, measure, two_addresses
from bench.report import Plan, median, progress
from bridgehead.cluster import Cluster
from bridgehead.cluster.java import find_java
from bridgehead.cluster.node_plan import Ports
from bridgehead.cluster.zookeeper import EmbeddedZooKeeper
from bridgehead.kafka_wire.messages.metadata import MetadataRequest
from fidelity.real_kafka import kafka_brokers, reason_to_skip
from raw_client.asynchronous import AsyncConnection
from raw_client.codec import create_topics

_OUTSTANDING = 64
_SMALL = 192
_BULK = 100
_REPLICAS = 3


async def _bulk(address: str, prefix: str) -> float:
    """Return the seconds for one CreateTopics of `_BULK` topics."""
    connection = await AsyncConnection.open(address)
    names = [f"{prefix}-{number}" for number in range(_BULK)]
    request = create_topics(names, replication_factor=_REPLICAS, timeout_ms=60_000)
    began = time.perf_counter()
    answer = await connection.exchange(request)
    took = time.perf_counter() - began
    check_created(answer)
    connection.close()
    return took


async def _forwarder(bootstrap: str) -> str:
    """Wait for a controller; return another broker's address."""
    connection = await AsyncConnection.open(bootstrap.split(",")[0])
    while True:
        metadata = await connection.call(3, 12, MetadataRequest(topics=[]))
        others = [b for b in metadata.brokers if b.node_id != metadata.controller_id]
        if metadata.controller_id >= 0 and len(metadata.brokers) == _REPLICAS:
            connection.close()
            return f"{others[0].host}:{others[0].port}"
        await asyncio.sleep(0.1)


def run(plan: Plan) -> list[str]:
    """Measure small and bulk creates, alternating between the two clusters."""
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
                return _compare(plan, asyncio.run(_forwarder(theirs)), two_addresses(ours)[1])
        finally:
            zookeeper.stop()


def _compare(plan: Plan, theirs: str, ours: str) -> list[str]:
    measure(theirs, "warm", connections=8, count=16)
    measure(ours, "warm", connections=8, count=16)
    small: dict[str, list[float]] = {theirs: [], ours: []}
    bulk: dict[str, list[float]] = {theirs: [], ours: []}
    for round_ in range(plan.rounds(2)):
        progress(f"real-kafka: round {round_ + 1}")
        for address in (theirs, ours):
            load = measure(address, f"s{round_}", connections=_OUTSTANDING, count=_SMALL)
            small[address].append(load.per_s)
            bulk[address].append(asyncio.run(_bulk(address, f"b{round_}")))
    rate, their_rate = median(small[ours]), median(small[theirs])
    took, their_time = median(bulk[ours]), median(bulk[theirs])
    return [
        f"small CreateTopics, {_OUTSTANDING} outstanding: {rate / their_rate:.0f} times a real "
        f"Kafka's rate ({rate:.0f} against {their_rate:.0f} topics/s)",
        f"one CreateTopics of {_BULK} topics, {_REPLICAS} replicas: {their_time / took:.0f} times "
        f"as fast ({took * 1e3:.0f} ms against {their_time * 1e3:.0f} ms)",
    ]
