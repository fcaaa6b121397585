"""The numbers count what they say, under the draft's names and over Kafka's window."""

from __future__ import annotations

from prometheus_client import CollectorRegistry, generate_latest

from metrics import names
from metrics.node_metrics import NodeMetrics
from metrics.windows import Quantiles, Rate


class _Time:
    now_s = 100.0

    def __call__(self) -> float:
        return self.now_s


def test_a_connection_counts_once_however_many_requests_wait() -> None:
    """num-client-forwarding-to-controller-count counts connections."""
    metrics = NodeMetrics(CollectorRegistry(), now_s=_Time())
    for connection in ("a", "a", "b"):
        metrics.forwarding_began(connection)
    assert metrics.snapshot()[names.CLIENTS_FORWARDING.name] == 2
    metrics.forwarding_ended("a")
    assert metrics.snapshot()[names.CLIENTS_FORWARDING.name] == 2
    metrics.forwarding_ended("a")
    metrics.forwarding_ended("b")
    assert metrics.snapshot()[names.CLIENTS_FORWARDING.name] == 0


def test_counters_are_exposed_as_they_are_counted() -> None:
    """What Prometheus reads is what the snapshot says."""
    registry = CollectorRegistry()
    metrics = NodeMetrics(registry, now_s=_Time())
    for _ in range(3):
        metrics.message_redirected()
    metrics.authorization_failed()
    metrics.not_controller_answered()
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


def test_a_rate_counts_from_its_oldest_sample_and_forgets() -> None:
    """Two windows of 30 s: 60 events in one second are two a second, then none."""
    rate = Rate(samples=2, window_ms=30_000)
    for _ in range(60):
        rate.record(100.0)
    assert rate.measure(101.0) == 2.0
    assert rate.measure(140.0) == 60 / 40
    assert rate.measure(160.0) == 0.0


def test_quantiles_are_those_of_the_last_values() -> None:
    """Exact, and bounded in memory."""
    quantiles = Quantiles(size=100)
    assert quantiles.measure(0.5) == [0.0]
    for value in range(1000):
        quantiles.record(float(value))
    assert quantiles.measure(0.0, 0.5, 1.0) == [900.0, 950.0, 999.0]
