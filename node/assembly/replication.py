"""Connects replication with a node's configuration, its metadata and the controller."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping
from typing import Final

from bridgehead.admin.config import Address, read_config
from bridgehead.admin.credentials import login_source
from bridgehead.admin.errors import AdminConfigError
from bridgehead.admin.tls import build_tls
from bridgehead.kafka_wire.api_key import ApiKey
from bridgehead.kafka_wire.messages.alter_partition import (
    AlterPartitionRequest,
    AlterPartitionResponse,
)
from broker_proxy.forwarding.controller_requests import ControllerRequests
from broker_proxy.metadata.cache import MetadataCache
from data_plane.partitions import Partitions
from data_plane.replication.fetchers import ReplicaFetchers
from data_plane.replication.fetching import FetchLimits
from data_plane.replication.isr_changes import IsrChanges
from data_plane.replication.peer import PeerSecurity
from metrics import names
from metrics.names import Metric
from metrics.node_metrics import NodeMetrics
from node.config import NodeConfig, NodeConfigError

_ALTER_PARTITION_VERSION: Final = 3
# A client of the inter-broker listener needs the listener's properties with this prefix.
_TLS_PREFIX: Final = "ssl."


class Replication:
    """Fetches from leaders, and maintains the ISRs of the partitions that this broker leads."""

    def __init__(self, partitions: Partitions, fetchers: ReplicaFetchers, isrs: IsrChanges) -> None:
        self._partitions = partitions
        self._fetchers = fetchers
        self._isrs = isrs
        self._live: frozenset[int] = frozenset()
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Start to fetch from leaders, and to check which followers lag."""
        self._task = asyncio.create_task(self._check_lag())
        self._fetchers.roles_changed()

    def metadata_changed(self, live: Iterable[int]) -> None:
        """Fetch from the leaders in the metadata. Call this when every partition has its new role.

        `live`: the live brokers.
        """
        self._fetchers.roles_changed()
        before, self._live = self._live, frozenset(live)
        if before != self._live:  # A follower may have stopped.
            for partition in self._partitions.by_name.values():
                partition.advance_high_watermark()

    async def _check_lag(self) -> None:
        while True:
            await asyncio.sleep(self._isrs.lag_max_ms / 2 / 1000)  # as in Kafka
            for partition in list(self._partitions.by_name.values()):
                partition.check_lag()
                partition.advance_high_watermark()

    async def stop_following(self) -> None:
        """Fetch nothing more, before this broker leaves; its own partitions keep their ISRs.

        A follower that has left the ISR and still fetches counts as caught up. For the next
        replica.lag.time.max.ms its leaders would acknowledge nothing that it lacks.
        """
        await self._fetchers.stop()

    async def stop(self) -> None:
        """Stop fetching and checking. This broker's replicas remain leaders or followers."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
        await self._fetchers.stop()
        await self._isrs.stop()


def build_isr_changes(
    config: NodeConfig,
    cache: MetadataCache,
    broker_epoch: Callable[[], int],
    requests: ControllerRequests,
    metrics: NodeMetrics,
) -> IsrChanges:
    """Return the object with which this broker, as a partition leader, requests ISR changes."""

    async def alter(request: AlterPartitionRequest) -> AlterPartitionResponse | None:
        response = await requests.send(ApiKey.ALTER_PARTITION, _ALTER_PARTITION_VERSION, request)
        assert response is None or isinstance(response, AlterPartitionResponse)
        return response

    return IsrChanges(
        config.broker_id,
        broker_epoch,
        alter,
        metrics,
        is_live=lambda broker_id: broker_id in cache.brokers,
        lag_max_ms=config.broker.long("replica.lag.time.max.ms"),
    )


def epoch_for_leaders(
    cache: MetadataCache, zookeepers: Callable[[], int], krafts: Callable[[], int]
) -> Callable[[], int]:
    """Return a function that tells the broker epoch which the leaders expect in a Fetch (KIP-903).

    Under a KRaft controller it is the epoch of the registration there: a leader that is a Kafka
    broker in KRaft mode takes no follower with another epoch into an ISR.
    """
    return lambda: krafts() if cache.controller_is_kraft else zookeepers()


def build_replication(
    config: NodeConfig,
    cache: MetadataCache,
    partitions: Partitions,
    isrs: IsrChanges,
    broker_epoch: Callable[[], int],
    metrics: NodeMetrics,
) -> Replication:
    """Return the replication of this broker.

    Raises:
        NodeConfigError: brokers cannot log in to each other with these properties.
    """
    listener = config.inter_broker_listener

    def address_of(broker_id: int) -> Address | None:
        broker = cache.brokers.get(broker_id)
        endpoint = broker.endpoints.get(listener) if broker is not None else None
        return Address(endpoint.host, endpoint.port) if endpoint is not None else None

    number = config.broker.int
    fetchers = ReplicaFetchers(
        partitions,
        address_of=address_of,
        security=_security(config, listener),
        limits=FetchLimits(
            wait_max_ms=number("replica.fetch.wait.max.ms"),
            min_bytes=number("replica.fetch.min.bytes"),
            partition_bytes_max=number("replica.fetch.max.bytes"),
            response_bytes_max=number("replica.fetch.response.max.bytes"),
            backoff_ms=number("replica.fetch.backoff.ms"),
        ),
        socket_timeout_ms=number("replica.socket.timeout.ms"),
        broker_epoch=broker_epoch,
    )
    _register_gauges(partitions, metrics)
    return Replication(partitions, fetchers, isrs)


def _security(config: NodeConfig, listener: str) -> PeerSecurity:
    """Return how this broker logs in to the inter-broker listener of other brokers.

    Raises:
        NodeConfigError: the properties do not suffice. The text says what to set.
    """
    protocols = {section.name: section.security_protocol for section in config.listeners}
    if listener not in protocols:
        raise NodeConfigError(
            f"bridgehead.data.plane=true needs a listener for other brokers, and there is no "
            f"listener {listener}: set inter.broker.listener.name to one of "
            f"{', '.join(protocols)}."
        )
    mechanism = config.broker.string("sasl.mechanism.inter.broker.protocol") or ""
    try:
        return peer_security(
            f"broker-{config.broker_id}-fetcher",
            protocols[listener],
            mechanism,
            config.security[listener].properties,
        )
    except AdminConfigError as error:
        raise NodeConfigError(
            f"Brokers cannot log in to listener {listener}: {error} Set their login as in "
            "Kafka (sasl.mechanism.inter.broker.protocol and others), or remove "
            "inter.broker.listener.name, or set bridgehead.data.plane=false."
        ) from error


def peer_security(
    client_id: str, protocol: str, mechanism: str, listener_properties: Mapping[str, str]
) -> PeerSecurity:
    """Return how this broker logs in to a listener of another node, with its own properties of it.

    Raises:
        AdminConfigError: the properties do not suffice.
    """
    properties: dict[str, object] = {
        "bootstrap.servers": "localhost:9092",  # Required, but not used.
        "security.protocol": protocol,
        **{
            name: value
            for name, value in listener_properties.items()
            if name.startswith(_TLS_PREFIX)
        },
    }
    if protocol.startswith("SASL"):
        properties["sasl.mechanism"] = mechanism
        properties["sasl.jaas.config"] = listener_properties.get(
            f"{mechanism.lower()}.sasl.jaas.config", ""
        )
    client_config = read_config(properties)
    return PeerSecurity(client_id, build_tls(client_config), login_source(client_config, None))


def _register_gauges(partitions: Partitions, metrics: NodeMetrics) -> None:
    metrics.gauge(names.PARTITIONS, lambda: len(partitions.by_name))
    metrics.gauges(lambda: _health(partitions))


def _health(partitions: Partitions) -> Mapping[Metric, float]:
    """Count the partitions that this broker leads, in one pass: there may be 100,000 of them."""
    leaders = under_replicated = under_min_isr = at_min_isr = 0
    topic, min_isr = "", 0
    for partition in partitions.by_name.values():
        if partition.isr_state is None:
            continue
        if partition.topic != topic:
            topic, settings = partition.topic, partition.log.settings()
            min_isr = settings.number("min.insync.replicas")
        size, replicas = len(partition.isr_state.isr), len(partition.replicas)
        leaders += 1
        under_replicated += size < replicas
        under_min_isr += size < min(min_isr, replicas)
        at_min_isr += size == min(min_isr, replicas)
    return {
        names.LEADERS: leaders,
        names.UNDER_REPLICATED: under_replicated,
        names.UNDER_MIN_ISR: under_min_isr,
        names.AT_MIN_ISR: at_min_isr,
    }
