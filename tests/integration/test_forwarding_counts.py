"""Each forwarded write has one Envelope, and brokers report the configured controller id."""

from __future__ import annotations

import json
import urllib.request
from collections import Counter
from pathlib import Path
from typing import Any

from bridgehead.cluster import Cluster
from bridgehead.raw_client.blocking import Connection
from bridgehead.raw_client.codec import create_topic_body
from tests.integration.admin_clients import ConfluentAdmin
from tests.integration.conftest import StartCluster

NAME = "bridgehead.metadata.controller.id"
WRITES_PER_BROKER = 5
METADATA, CREATE_TOPICS = 3, 19


def metrics_of(cluster: Cluster, broker_id: int) -> dict[str, float]:
    return metrics_at(cluster.brokers[broker_id].metrics_url)


def metrics_at(url: str) -> dict[str, float]:
    with urllib.request.urlopen(url) as response:
        lines = [line.rpartition(" ") for line in response.read().decode().splitlines()]
    return {name: float(value) for name, _, value in lines if not name.startswith("#")}


def events_of(data_dir: Path, broker_id: int) -> list[dict[str, Any]]:
    files = sorted((data_dir / "evidence").glob(f"run=*/node={broker_id}/*.jsonl"))
    return [json.loads(line) for file in files for line in file.read_text().splitlines()]


def test_every_forwarded_write_has_one_envelope(
    start_brokers: StartCluster, tmp_path: Path
) -> None:
    """Each broker reports itself as the controller: a client may send its writes to any of them."""
    cluster = start_brokers(data_dir=tmp_path, controller=1, properties={NAME: "self"})
    for broker in (1, 2, 3):
        admin, name = ConfluentAdmin(cluster.bootstrap_server(broker)), f"by-{broker}"
        admin.create(name, 1, 1, {})
        admin.create_partitions(name, 2)
        admin.alter(name, {"retention.ms": "1000"}, legacy=False)
        admin.alter(name, {"retention.ms": "2000"}, legacy=True)
        admin.delete(name)
        admin.close()
    metrics = {broker: metrics_of(cluster, broker) for broker in (1, 2, 3)}
    latency = "kafka_server_zookeeperclientmetrics_zookeeperrequestlatencyms"
    assert all(metric[f'{latency}{{quantile="0.5"}}'] > 0 for metric in metrics.values())
    cluster.stop()
    routes, forwarded = Counter[str](), Counter[int]()
    for broker in (1, 2, 3):
        events = events_of(tmp_path, broker)
        received = [e for e in events if e["kind"] == "request_received"]
        routes.update(e["route"] for e in received)
        to_forward = [e["request_id"] for e in received if e["route"] == "FORWARD"]
        sent = [e for e in events if e["kind"] == "forward_sent"]
        assert [e["request_id"] for e in sent] == to_forward
        assert {e["attempt"] for e in sent} <= {1}
        assert {e["controller_id"] for e in sent} <= {1}
        assert {e["local"] for e in sent} <= {broker == 1}
        in_envelopes = sum(not e["local"] for e in sent)
        assert metrics[broker]["num_messages_redirected_count_total"] == in_envelopes
        # This broker sent no requests of its own.
        assert metrics[broker]["bridgehead_client_requests_forwarded_total"] == in_envelopes
        assert metrics[broker]["not_controller_responses_count_total"] == 0
        forwarded[broker] = len(sent)
    assert "NOT_CONTROLLER" not in routes
    assert routes["FORWARD"] == 3 * WRITES_PER_BROKER
    assert forwarded[2] + forwarded[3] > 0


def test_brokers_report_the_configured_controller(
    start_brokers: StartCluster,
) -> None:
    cluster = start_brokers(
        controller=3, node_properties={1: {NAME: "random"}, 2: {NAME: "99"}, 3: {NAME: "actual"}}
    )
    controllers: dict[int, set[int]] = {}
    for broker in (1, 2, 3):
        connection = Connection(cluster.bootstrap_server(broker))
        responses = [connection.call(METADATA, 1, {"topics": []}) for _ in range(200)]
        controllers[broker] = {response["controllerId"] for response in responses}
        created = connection.call(CREATE_TOPICS, 1, create_topic_body(f"through-{broker}"))
        assert [topic["errorCode"] for topic in created["topics"]] == [0]
        connection.close()
    assert controllers == {1: {1, 2, 3}, 2: {99}, 3: {3}}
