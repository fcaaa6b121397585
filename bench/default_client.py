"""Measures how long a confluent-kafka AdminClient needs to recover from a killed controller.

librdkafka sends admin writes to the controller that Metadata named, and requests Metadata again
only when its refresh interval has passed. There are two remedies: a short refresh interval, and
brokers that name themselves as the controller. The benchmark uses our cluster without a remedy and
with each remedy. Without `--quick` it also uses a live Kafka 3.9.1, if its jars (`make kafka-jars`)
and Java 17 to 23 exist.
"""

from __future__ import annotations

import json
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil
from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient, NewTopic

from bench.report import Plan, progress
from bridgehead.cluster import Cluster
from bridgehead.cluster.java import find_java
from bridgehead.cluster.ports import Ports
from bridgehead.cluster.zookeeper import EmbeddedZooKeeper
from tests.fidelity.real_kafka import kafka_brokers, reason_to_skip

_SELF = {"bridgehead.metadata.controller.id": "self"}
_QUICK = {"topic.metadata.refresh.interval.ms": 1000}


@dataclass(frozen=True)
class Outcome:
    """The result and the cost of the client's next create_topics after the kill."""

    result: str
    seconds: float
    processor_seconds: float
    metadata_requests: int

    def line(self, name: str) -> str:
        """Return one line of results."""
        return (
            f"{name}: {self.result} after {self.seconds:.1f} s, "
            f"{self.processor_seconds:.1f} s of processor time, "
            f"{self.metadata_requests} Metadata requests"
        )


class _Client:
    def __init__(self, bootstrap: str, options: dict[str, Any]) -> None:
        self._requests: dict[str, int] = {}
        self._up: set[int] = set()
        settings = {
            "bootstrap.servers": bootstrap,
            "log_level": 0,
            "statistics.interval.ms": 200,
            "stats_cb": self._count,
        }
        self._admin = AdminClient({**settings, **options})

    def _count(self, text: str) -> None:
        """Store which brokers are connected, and how many Metadata requests each has received."""
        brokers = json.loads(text)["brokers"]
        self._up = {node["nodeid"] for node in brokers.values() if node["state"] == "UP"}
        for name, broker in brokers.items():
            self._requests[name] = broker.get("req", {}).get("Metadata", 0)

    def wait_for_disconnect(self, broker: int) -> None:
        """Wait until the client has noticed that a broker's connection is closed."""
        while broker in self._up:
            self._admin.poll(0.1)

    def create(self, topic: str) -> str:
        """Create a topic; return "success" or the error's name."""
        future = self._admin.create_topics([NewTopic(topic, 1, 1)])[topic]
        while not future.done():
            self._admin.poll(0.1)
        try:
            future.result()
        except KafkaException as error:
            return str(error.args[0].name())
        return "success"

    def metadata_requests(self) -> int:
        """Return how many Metadata requests the client has sent; statistics arrive every 0.2 s."""
        deadline = time.monotonic() + 0.5
        while time.monotonic() < deadline:
            self._admin.poll(0.1)
        return sum(self._requests.values())


def measure(bootstrap: str, kill: Callable[[], int], options: dict[str, Any]) -> Outcome:
    """Create a topic, kill the controller, and create a second topic once the client has noticed.

    Without this wait, the client could send the second request on the broken connection. It would
    then fail with _TRANSPORT, whatever the settings.
    """
    client = _Client(bootstrap, options)
    assert client.create("before") == "success"
    requests = client.metadata_requests()
    client.wait_for_disconnect(kill())
    processor, began = time.process_time(), time.monotonic()
    result = client.create("after")
    seconds, processor = time.monotonic() - began, time.process_time() - processor
    return Outcome(result, seconds, processor, client.metadata_requests() - requests)


def run(plan: Plan) -> list[str]:
    """Measure each case once: the times depend on timeouts, so they hardly vary."""
    lines = []
    for name, properties, options in (
        ("ours, default client", {}, {}),
        ("ours, refresh interval 1000 ms", {}, _QUICK),
        ("ours, metadata.controller.id=self", _SELF, {}),
    ):
        progress(f"default-client: {name}")
        with Cluster(brokers=3, properties=properties) as cluster:
            controller = cluster.wait_for_controller()
            other = next(broker for broker in cluster.brokers if broker != controller)
            # With `self`, the client regards its bootstrap broker as the controller, so the client
            # must not start with the broker that is killed.
            servers = cluster.bootstrap_server(other) if properties else cluster.bootstrap_servers
            outcome = measure(servers, cluster.kill_controller, options)
            lines.append(outcome.line(name))
    reason = reason_to_skip()
    if reason is not None or plan.quick:
        return [*lines, f"Kafka SKIPPED: {reason or 'quick'}"]
    for name, options in (
        ("Kafka 3.9.1, default client", {}),
        ("Kafka 3.9.1, refresh interval 1000 ms", _QUICK),
    ):
        progress(f"default-client: {name}")
        lines.append(_on_kafka(options).line(name))
    return lines


def _on_kafka(options: dict[str, Any]) -> Outcome:
    with tempfile.TemporaryDirectory(prefix="bench-") as folder:
        zookeeper = EmbeddedZooKeeper(Path(folder) / "zk", [Ports().choose()], java=find_java())
        zookeeper.start()
        try:
            zookeeper.wait_until_serving()
            with kafka_brokers(
                Path(folder) / "kafka", zookeeper.connect, (1, 2, 3), forwarding=True
            ) as bootstrap:
                return measure(bootstrap, lambda: _kill_controller(bootstrap), options)
        finally:
            zookeeper.stop()


def _kill_controller(bootstrap: str) -> int:
    """Kill the broker that Metadata names as the controller; return its id."""
    metadata = AdminClient({"bootstrap.servers": bootstrap, "log_level": 0}).list_topics(timeout=30)
    port = metadata.brokers[metadata.controller_id].port
    (pid,) = {
        connection.pid
        for connection in psutil.net_connections("tcp")
        if connection.laddr.port == port and connection.status == psutil.CONN_LISTEN
    }
    psutil.Process(pid).kill()
    return int(metadata.controller_id)
