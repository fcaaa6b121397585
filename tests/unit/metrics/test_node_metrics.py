"""The metrics of a node: names of KIP-590's draft, counts, and rates over Kafka's windows."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest
from prometheus_client import CollectorRegistry, generate_latest

from metrics import names
from metrics.node_metrics import NodeMetrics
from metrics.windows import Quantiles, Rate


class _Time:
    now_s = 100.0

    def __call__(self) -> float:
        return self.now_s


def test_a_connection_with_many_forwarded_requests_counts_once() -> None:
    metrics = NodeMetrics(CollectorRegistry(), now_s=_Time())
    for connection in ("a", "a", "b"):
        metrics.forwarding_began(connection)
    assert metrics.snapshot()[names.CLIENTS_FORWARDING.name] == 2
    metrics.forwarding_ended("a")
    assert metrics.snapshot()[names.CLIENTS_FORWARDING.name] == 2
    metrics.forwarding_ended("a")
    metrics.forwarding_ended("b")
    assert metrics.snapshot()[names.CLIENTS_FORWARDING.name] == 0


def test_the_metrics_of_forwarding_count_connections_clients_requests_and_messages() -> None:
    """Three connections forward 5 requests; the broker also sends 6 requests of its own."""
    time = _Time()
    metrics = NodeMetrics(CollectorRegistry(), now_s=time)
    for connection in ("a", "a", "b", "c", "a"):
        metrics.forwarding_began(connection)
        metrics.message_redirected()
        metrics.client_request_redirected()
    for _ in range(6):
        metrics.message_redirected()
    metrics.forwarding_ended("b")
    time.now_s += 10
    values = metrics.snapshot()
    assert values["num_client_forwarding_to_controller_count"] == 2
    assert values["num_client_fowarding_to_controller_count"] == 2, "as KIP-590 spells it"
    assert values["bridgehead_client_requests_forwarded_total"] == 5
    assert values["num_messages_redirected_count"] == 11
    # The windows of 30 s before the first event count as empty.
    assert values["num_client_forwarding_to_controller_rate"] == 3 / 40
    assert values["num_messages_redirected_rate"] == 11 / 40
    for connection in ("a", "c", "a", "a"):
        metrics.forwarding_ended(connection)
    values = metrics.snapshot()
    assert values["num_client_forwarding_to_controller_count"] == 0
    assert values["num_client_fowarding_to_controller_count"] == 0
    assert values["bridgehead_client_requests_forwarded_total"] == 5
    metrics.forwarding_began("a")
    assert metrics.snapshot()["num_client_forwarding_to_controller_rate"] == 4 / 40


def test_exposed_counters_equal_the_snapshot() -> None:
    registry = CollectorRegistry()
    metrics = NodeMetrics(registry, now_s=_Time())
    for _ in range(3):
        metrics.message_redirected()
    metrics.authorization_failed()
    metrics.not_controller_responded()
    metrics.request_completed("CreateTopics", 7, 1.5)
    snapshot = metrics.snapshot()
    assert snapshot[names.MESSAGES_REDIRECTED.name] == 3
    assert snapshot[names.AUTHORIZATION_FAILED.name] == 1
    assert snapshot[names.NOT_CONTROLLER.name] == 1
    text = generate_latest(registry).decode()
    values = {line.rpartition(" ")[0]: line.rpartition(" ")[2] for line in text.splitlines()}
    redirected = [v for k, v in values.items() if k.startswith(names.MESSAGES_REDIRECTED.name)]
    assert "3.0" in redirected
    assert any("CreateTopics" in name and value == "1.0" for name, value in values.items())


def test_clients_are_counted_by_software() -> None:
    """KIP-511. Long names, and names beyond a maximum number, are counted as other."""
    registry = CollectorRegistry()
    metrics = NodeMetrics(registry, now_s=_Time())
    connected = [("librdkafka", "2.6.1", "CLIENTS")] * 2 + [("unknown", "unknown", "CLIENTS")]
    metrics.connected_software(lambda: connected)

    def results() -> dict[str, str]:
        lines = generate_latest(registry).decode().splitlines()
        pairs = (line.rpartition(" ") for line in lines)
        return {k: v for k, _, v in pairs if k.startswith(names.CLIENT_SOFTWARE.name)}

    def row(name: str, version: str) -> str:
        labels = f'client_software_name="{name}",client_software_version="{version}"'
        return f'{names.CLIENT_SOFTWARE.name}{{{labels},listener="CLIENTS"}}'

    assert results() == {row("librdkafka", "2.6.1"): "2.0", row("unknown", "unknown"): "1.0"}
    connected.append(("x" * 101, "1", "CLIENTS"))
    connected += [(f"new-{number}", "1", "CLIENTS") for number in range(300)]
    after = results()
    assert after[row("librdkafka", "2.6.1")] == "2.0"
    assert len(after) <= 101
    assert sum(map(float, after.values())) == len(connected)


def test_queue_time_and_remote_time_have_quantiles() -> None:
    registry = CollectorRegistry()
    metrics = NodeMetrics(registry, now_s=_Time())
    metrics.queue_time(250.0)
    metrics.remote_time(4.0)
    text = generate_latest(registry).decode()
    assert f'{names.FORWARDING_QUEUE_TIME.name}{{quantile="0.99"}} 250.0' in text
    assert f'{names.FORWARDING_REMOTE_TIME.name}{{quantile="0.999"}} 4.0' in text


@pytest.mark.parametrize("dialect", names.CounterSpelling)
def test_zookeepers_latency_has_one_name_in_both_dialects(dialect: names.CounterSpelling) -> None:
    registry = CollectorRegistry()
    metrics = NodeMetrics(registry, now_s=_Time(), dialect=dialect)
    for elapsed_ms in (7.0, 7.0, 80.0):
        metrics.zookeeper_replied(elapsed_ms)
    text = generate_latest(registry).decode()
    name = "kafka_server_zookeeperclientmetrics_zookeeperrequestlatencyms"
    assert f'{name}{{quantile="0.5"}} 7.0' in text
    assert f'{name}{{quantile="0.999"}} 80.0' in text


def test_a_snapshot_has_requests_by_api() -> None:
    metrics = NodeMetrics(CollectorRegistry(), now_s=_Time())
    for version in (7, 7, 5):
        metrics.request_completed("CreateTopics", version, 1.0)
    name = names.REQUESTS.name
    snapshot = metrics.snapshot()
    assert snapshot[f'{name}{{request="CreateTopics",version="7"}}'] == 2
    assert snapshot[f'{name}{{request="CreateTopics",version="5"}}'] == 1


def test_a_fetch_of_a_follower_counts_under_two_names_and_not_in_the_snapshot() -> None:
    registry = CollectorRegistry()
    metrics = NodeMetrics(registry, now_s=_Time())
    for name in ("Fetch", names.FOLLOWER_FETCH, names.FOLLOWER_FETCH):
        metrics.request_completed(name, 17, 1.0)
    text = generate_latest(registry).decode()
    requests = "kafka_network_requestmetrics_requestspersec"
    assert f'{requests}{{request="Fetch",version="17"}} 3.0' in text
    assert f'{requests}{{request="FetchFollower",version="17"}} 2.0' in text
    assert metrics.snapshot()[f'{names.REQUESTS.name}{{request="Fetch",version="17"}}'] == 1
    assert "FetchFollower" not in str(metrics.snapshot())


def test_rates_are_the_same_as_in_kafka() -> None:
    """Kafka 3.9.1's own Rate gave the expected values of sixty histories."""
    recorded = Path(__file__).parents[2] / "data" / "rates.jsonl.gz"
    measured = 0
    for line in gzip.decompress(recorded.read_bytes()).splitlines():
        history = json.loads(line)
        rate = Rate(history["samples"], history["window_ms"])
        for step, now_ms, value in history["steps"]:
            if step == "record":
                rate.record(now_ms / 1000)
            else:
                measured += 1
                assert rate.measure(now_ms / 1000) == pytest.approx(value)
    assert measured > 200


def test_a_rate_counts_missing_windows_as_empty() -> None:
    assert Rate(samples=2, window_ms=30_000).measure(99.0) == 0.0
    rate = Rate(samples=2, window_ms=30_000)
    for _ in range(60):
        rate.record(100.0)
    assert rate.measure(101.0) == 60 / 31
    assert rate.measure(140.0) == 60 / 40
    assert rate.measure(160.0) == 0.0


def test_quantiles_are_computed_from_the_last_values() -> None:
    quantiles = Quantiles(size=100)
    assert quantiles.measure(0.5) == [0.0]
    for value in range(1000):
        quantiles.record(float(value))
    assert quantiles.measure(0.0, 0.5, 1.0) == [900.0, 950.0, 999.0]
