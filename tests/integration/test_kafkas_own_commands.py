"""Kafka's own console clients and tools, from its jars, work with our brokers' data plane."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from bridgehead.cluster import Cluster
from bridgehead.cluster.java import find_java
from bridgehead.raw_client.blocking import Connection
from bridgehead.raw_client.codec import create_topics
from tests.fidelity.real_kafka import jars, reason_to_skip

pytestmark = [pytest.mark.kafka, pytest.mark.long]

BROKERS = (1, 2, 3)
PROPERTIES = {
    "bridgehead.data.plane": "true",
    "group.initial.rebalance.delay.ms": "0",
    "offsets.topic.num.partitions": "3",
}
MAIN_CLASSES = {
    "console-producer": "kafka.tools.ConsoleProducer",
    "console-consumer": "org.apache.kafka.tools.consumer.ConsoleConsumer",
    "consumer-groups": "org.apache.kafka.tools.consumer.group.ConsumerGroupCommand",
    "get-offsets": "org.apache.kafka.tools.GetOffsetShell",
    "delete-records": "org.apache.kafka.tools.DeleteRecordsCommand",
    "verifiable-producer": "org.apache.kafka.tools.VerifiableProducer",
    "dump-log": "kafka.tools.DumpLogSegments",
}
TOPIC, GROUP = "orders", "readers"
LINES = [f"order-{number}" for number in range(20)]


@pytest.fixture(scope="module")
def logs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the parent of the brokers' log directories."""
    return tmp_path_factory.mktemp("logs")


@pytest.fixture(scope="module")
def cluster(logs: Path) -> Iterator[Cluster]:
    if reason := reason_to_skip():
        pytest.skip(reason)
    node_properties = {broker: {"log.dirs": str(logs / str(broker))} for broker in BROKERS}
    with Cluster(brokers=3, properties=PROPERTIES, node_properties=node_properties) as running:
        connection = Connection(running.bootstrap_server(1))
        assert isinstance(
            connection.exchange(create_topics([TOPIC], partitions=2, replication_factor=3)), bytes
        )
        connection.close()
        yield running


def run(tool: str, *arguments: str, stdin: str = "") -> str:
    """Run a tool of Kafka to its end; return what it prints."""
    java = [str(find_java()), "-Xmx128m", "-XX:TieredStopAtLevel=1", "-cp", f"{jars()}/*"]
    command = [*java, MAIN_CLASSES[tool], *arguments]
    done = subprocess.run(command, input=stdin, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def offsets(servers: str) -> set[str]:
    return set(run("get-offsets", "--bootstrap-server", servers, "--topic", TOPIC).split())


def test_kafkas_commands_produce_consume_and_manage_the_group(
    cluster: Cluster, tmp_path: Path
) -> None:
    server = ["--bootstrap-server", cluster.bootstrap_servers]
    keyed = "".join(f"{line}:{line}\n" for line in LINES)
    properties = ["--property", "parse.key=true", "--property", "key.separator=:"]
    run("console-producer", *server, "--topic", TOPIC, *properties, stdin=keyed)

    limits = ["--max-messages", str(len(LINES)), "--timeout-ms", "60000"]
    consumer = ["console-consumer", *server, "--topic", TOPIC, *limits, "--group", GROUP]
    assert sorted(run(*consumer, "--from-beginning").split()) == sorted(LINES)

    # On a busy machine the tool's default timeout of 5 s is too short.
    groups = ["consumer-groups", *server, "--timeout", "60000"]
    assert GROUP in run(*groups, "--list").split()
    rows = [line.split() for line in run(*groups, "--describe", "--group", GROUP).splitlines()]
    partitions = [row for row in rows if row[:2] == [GROUP, TOPIC]]
    assert sum(int(row[3]) for row in partitions) == len(LINES)  # CURRENT-OFFSET
    assert [row[5] for row in partitions] == ["0", "0"]  # LAG

    run(
        *groups, "--reset-offsets", "--to-earliest", "--execute", "--group", GROUP, "--topic", TOPIC
    )
    assert sorted(run(*consumer).split()) == sorted(LINES)

    ends = offsets(cluster.bootstrap_servers)
    assert sum(int(end.rpartition(":")[2]) for end in ends) == len(LINES)
    request = tmp_path / "delete.json"
    deletion = {"topic": TOPIC, "partition": 0, "offset": 3}
    request.write_text(json.dumps({"partitions": [deletion], "version": 1}), encoding="utf-8")
    deleted = run("delete-records", *server, "--offset-json-file", str(request))
    assert f"partition: {TOPIC}-0\tlow_watermark: 3" in deleted
    earliest = run("get-offsets", *server, "--topic", TOPIC, "--time", "earliest").split()
    assert set(earliest) == {f"{TOPIC}:0:3", f"{TOPIC}:1:0"}

    assert "successful" in run(*groups, "--delete", "--group", GROUP)
    assert GROUP not in run(*groups, "--list").split()


def test_every_record_of_the_verifiable_producer_is_acknowledged_and_on_every_replica(
    cluster: Cluster, logs: Path
) -> None:
    """Every replica's segment is read with `kafka-dump-log` while the brokers run."""
    arguments = ["--bootstrap-server", cluster.bootstrap_servers, "--topic", "verified"]
    connection = Connection(cluster.bootstrap_server(1))
    connection.exchange(create_topics(["verified"], replication_factor=3))
    connection.close()
    printed = run("verifiable-producer", *arguments, "--max-messages", "500", "--acks", "-1")
    events = [json.loads(line) for line in printed.splitlines()]
    acknowledged = [event["offset"] for event in events if event["name"] == "producer_send_success"]
    assert sorted(acknowledged) == list(range(500))
    for broker in BROKERS:
        segment = logs / str(broker) / "verified-0" / f"{0:020}.log"
        printed = run("dump-log", "--deep-iteration", "--files", str(segment))
        batches = [line for line in printed.splitlines() if line.startswith("baseOffset:")]
        assert [line for line in batches if not line.endswith("isvalid: true")] == []
        assert sum(line.startswith("| offset:") for line in printed.splitlines()) == 500
