"""The metrics of one node. The caller passes the registry that exposes them.

Some counters count events that the node also writes to its evidence. For four of them the judge
checks that the counter equals the number of these events (property K1, metrics_equal_events).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Final

from prometheus_client import CollectorRegistry
from prometheus_client.core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    UnknownMetricFamily,
)
from prometheus_client.metrics_core import Metric as Family
from prometheus_client.registry import Collector

from metrics import names
from metrics.names import CounterSpelling, Kind, Metric
from metrics.windows import Quantiles, Rate

_Family = CounterMetricFamily | GaugeMetricFamily | UnknownMetricFamily
QUANTILES: Final = (0.5, 0.99, 0.999)
# Bounds the number and the length of labels, because clients choose their software names.
SORTS_MAX: Final = 100
LABEL_LENGTH_MAX: Final = 100
OTHER: Final = "other"
_LOGIN_COUNTERS: Final = (
    names.LOGINS,
    names.FAILED_LOGINS,
    names.RENEWED_LOGINS,
    names.FAILED_RENEWALS,
    names.EXPIRED_SESSIONS,
)
_DATA_PLANE_COUNTERS: Final = (
    names.ISR_EXPANDS,
    names.ISR_SHRINKS,
    names.FAILED_ISR_UPDATES,
    *names.RECORD_COUNTERS,
)


class NodeMetrics(Collector):
    """Counts what happens in a node; a Prometheus collector."""

    def __init__(
        self,
        registry: CollectorRegistry,
        *,
        now_s: Callable[[], float],
        samples: int = 2,
        window_ms: int = 30_000,
        dialect: CounterSpelling = CounterSpelling.CONFLUENT,
    ) -> None:
        """`samples`: Kafka's metrics.num.samples; `window_ms`: its metrics.sample.window.ms."""
        self._now_s = now_s
        self._dialect = dialect
        self._pending: Counter[str] = Counter()  # connection -> its pending forwarded requests
        self._client_requests_count = 0
        self._began = Rate(samples, window_ms)
        self._redirected = Rate(samples, window_ms)
        self._redirected_count = 0
        self._authorization_failed_count = 0
        self._envelopes_rejected_count = 0
        self._channels_rejected_count = 0
        self._not_controller_count = 0
        self._forwarding_failure_count = 0
        self._login_counts: Counter[Metric] = Counter()
        self._data_plane_counts: Counter[Metric] = Counter()
        self._requests: Counter[tuple[str, int]] = Counter()
        self._times: dict[str, Quantiles] = {}
        self._queue_times = Quantiles()
        self._remote_times = Quantiles()
        self._zookeeper_times = Quantiles()
        self._gauges: dict[Metric, Callable[[], float]] = {}
        self._gauge_groups: list[Callable[[], Mapping[Metric, float]]] = []
        self._connected_software: Callable[[], Iterable[tuple[str, str, str]]] = tuple
        self._labelled: dict[Metric, Callable[[], Mapping[tuple[str, ...], float]]] = {}
        registry.register(self)

    def gauge(self, metric: Metric, read: Callable[[], float]) -> None:
        """Expose a gauge. `read` is called on each scrape and for each snapshot."""
        assert metric.kind is Kind.GAUGE, metric.name
        self._gauges[metric] = read

    def gauges(self, read: Callable[[], Mapping[Metric, float]]) -> None:
        """Expose gauges that are measured together. `read` is called as `gauge` says."""
        self._gauge_groups.append(read)

    def labelled(self, metric: Metric, read: Callable[[], Mapping[tuple[str, ...], float]]) -> None:
        """Expose a gauge with labels; `read` is called on each scrape. Snapshots omit it."""
        assert metric.kind is Kind.GAUGE, metric.name
        self._labelled[metric] = read

    def connected_software(self, read: Callable[[], Iterable[tuple[str, str, str]]]) -> None:
        """Expose the number of connections by software name, version and listener."""
        self._connected_software = read

    def forwarding_began(self, connection: str) -> None:
        """A request of a client connection is forwarded; the connection waits for the response."""
        self._pending[connection] += 1
        if self._pending[connection] == 1:
            self._began.record(self._now_s())

    def forwarding_ended(self, connection: str) -> None:
        """A client connection no longer waits for one of its forwarded requests."""
        self._pending[connection] -= 1
        if not self._pending[connection]:
            del self._pending[connection]

    def message_redirected(self) -> None:
        """A request was sent in an Envelope for the first time."""
        self._redirected_count += 1
        self._redirected.record(self._now_s())

    def client_request_redirected(self) -> None:
        """A request of a client was sent in an Envelope for the first time."""
        self._client_requests_count += 1

    def queue_time(self, elapsed_ms: float) -> None:
        """The time from the start of forwarding to a request's first Envelope."""
        self._queue_times.record(elapsed_ms)

    def remote_time(self, elapsed_ms: float) -> None:
        """The time from a request's first Envelope to its response."""
        self._remote_times.record(elapsed_ms)

    def zookeeper_replied(self, elapsed_ms: float) -> None:
        """The latency of a ZooKeeper request."""
        self._zookeeper_times.record(elapsed_ms)

    def authorization_failed(self) -> None:
        """The sender of an Envelope lacks CLUSTER_ACTION or is not the broker it claims to be."""
        self._authorization_failed_count += 1

    def envelope_rejected(self) -> None:
        """An Envelope was rejected with an error other than NOT_CONTROLLER."""
        self._envelopes_rejected_count += 1

    def channel_rejected(self) -> None:
        """A stream's certificate does not match its broker id."""
        self._channels_rejected_count += 1

    def forwarding_failed(self) -> None:
        """A forwarded request ended without a usable response from the controller."""
        self._forwarding_failure_count += 1

    def not_controller_responded(self) -> None:
        """A client got NOT_CONTROLLER."""
        self._not_controller_count += 1

    def login_succeeded(self, *, renewed: bool) -> None:
        """A client logged in or re-authenticated."""
        self._login_counts[names.RENEWED_LOGINS if renewed else names.LOGINS] += 1

    def login_failed(self, *, renewed: bool) -> None:
        """A login or re-authentication failed."""
        self._login_counts[names.FAILED_RENEWALS if renewed else names.FAILED_LOGINS] += 1

    def session_expired(self) -> None:
        """A session expired and its connection was closed."""
        self._login_counts[names.EXPIRED_SESSIONS] += 1

    def isr_expanded(self) -> None:
        """A replica joined the ISR of a partition that this broker leads."""
        self._data_plane_counts[names.ISR_EXPANDS] += 1

    def isr_shrunk(self) -> None:
        """Replicas left the ISR of a partition that this broker leads."""
        self._data_plane_counts[names.ISR_SHRINKS] += 1

    def isr_update_failed(self) -> None:
        """The controller rejected a change of an ISR."""
        self._data_plane_counts[names.FAILED_ISR_UPDATES] += 1

    def count(self, metric: Metric, amount: int = 1) -> None:
        """Add to one of `names.RECORD_COUNTERS`."""
        self._data_plane_counts[metric] += amount

    def request_completed(self, api: str, version: int, elapsed_ms: float) -> None:
        """A request was answered."""
        self._requests[api, version] += 1
        times = self._times.get(api)
        if times is None:
            times = self._times[api] = Quantiles()
        times.record(elapsed_ms)

    def snapshot(self) -> dict[str, float]:
        """Return the counters, and the gauges without labels, by `Metric.name`, for the evidence.

        Fetch requests of followers are left out: they leave no events.
        """
        now_s = self._now_s()
        values: dict[str, float] = {
            names.CLIENTS_FORWARDING.name: len(self._pending),
            names.CLIENTS_FORWARDING_AS_SPELLED.name: len(self._pending),
            names.CLIENT_REQUESTS_FORWARDED.name: self._client_requests_count,
            names.CLIENTS_FORWARDING_RATE.name: self._began.measure(now_s),
            names.MESSAGES_REDIRECTED.name: self._redirected_count,
            names.MESSAGES_REDIRECTED_RATE.name: self._redirected.measure(now_s),
            names.AUTHORIZATION_FAILED.name: self._authorization_failed_count,
            names.ENVELOPES_REJECTED.name: self._envelopes_rejected_count,
            names.CHANNELS_REJECTED.name: self._channels_rejected_count,
            names.NOT_CONTROLLER.name: self._not_controller_count,
            names.FORWARDING_FAILURES.name: self._forwarding_failure_count,
        }
        for metric in _LOGIN_COUNTERS:
            values[metric.name] = self._login_counts[metric]
        if names.PARTITIONS in self._gauges:  # Only with a data plane.
            values |= {
                metric.name: self._data_plane_counts[metric] for metric in _DATA_PLANE_COUNTERS
            }
        for (api, version), count in self._requests.items():
            if api == names.FOLLOWER_FETCH:
                continue
            values[f'{names.REQUESTS.name}{{request="{api}",version="{version}"}}'] = count
        values |= {metric.name: float(read()) for metric, read in self._gauges.items()}
        for read_all in self._gauge_groups:
            values |= {metric.name: float(value) for metric, value in read_all().items()}
        return values

    def _families(self, metric: Metric) -> Iterator[_Family]:
        """Yield one empty family for each exposed name of a metric."""
        for name in names.exposed_names(metric, self._dialect):
            if metric.kind is Kind.GAUGE:
                yield GaugeMetricFamily(name, _help(metric), labels=metric.labels)
            elif name.endswith("_total"):
                yield CounterMetricFamily(name, _help(metric), labels=metric.labels)
            else:  # A name that does not end in `_total` is exposed without a type.
                yield UnknownMetricFamily(name, _help(metric), labels=metric.labels)

    def collect(self) -> Iterable[Family]:
        """Called by the registry."""
        values = self.snapshot()
        for metric in names.METRICS:
            if metric.name in values:
                for family in self._families(metric):
                    family.add_metric([], values[metric.name])
                    yield family
        for family in self._families(names.REQUESTS):
            for (api, version), count in sorted(_with_all_fetches(self._requests).items()):
                family.add_metric([api, str(version)], count)
            yield family
        for family in self._families(names.CLIENT_SOFTWARE):
            for labels, count in sorted(_sorts(self._connected_software()).items()):
                family.add_metric(labels, count)
            yield family
        for metric, read in self._labelled.items():
            for family in self._families(metric):
                for chosen, value in sorted(read().items()):
                    family.add_metric(chosen, value)
                yield family
        times = GaugeMetricFamily(
            names.REQUEST_TIME.name, _help(names.REQUEST_TIME), labels=names.REQUEST_TIME.labels
        )
        for api, quantiles in sorted(self._times.items()):
            for quantile, value in zip(QUANTILES, quantiles.measure(*QUANTILES), strict=True):
                times.add_metric([api, str(quantile)], value)
        yield times
        yield _quantiles(names.FORWARDING_QUEUE_TIME, self._queue_times)
        yield _quantiles(names.FORWARDING_REMOTE_TIME, self._remote_times)
        yield _quantiles(names.ZOOKEEPER_LATENCY, self._zookeeper_times)


def _with_all_fetches(requests: Counter[tuple[str, int]]) -> Counter[tuple[str, int]]:
    followers = {
        ("Fetch", version): n
        for (api, version), n in requests.items()
        if api == names.FOLLOWER_FETCH
    }
    return requests + Counter(followers)


def _sorts(connections: Iterable[tuple[str, str, str]]) -> Counter[tuple[str, str, str]]:
    """Count connections by software, version and listener. The number of labels is limited."""
    counted: Counter[tuple[str, str, str]] = Counter()
    for name, version, listener in connections:
        sort = (name, version, listener)
        is_short = len(name) <= LABEL_LENGTH_MAX and len(version) <= LABEL_LENGTH_MAX
        if not is_short or (sort not in counted and len(counted) >= SORTS_MAX):
            sort = (OTHER, OTHER, listener)
        counted[sort] += 1
    return counted


def _quantiles(metric: Metric, quantiles: Quantiles) -> Family:
    family = GaugeMetricFamily(metric.name, _help(metric), labels=metric.labels)
    for quantile, value in zip(QUANTILES, quantiles.measure(*QUANTILES), strict=True):
        family.add_metric([str(quantile)], value)
    return family


def _help(metric: Metric) -> str:
    return f"{metric.help} ({metric.original})" if metric.original else metric.help
