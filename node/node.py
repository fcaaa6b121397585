"""One node: a broker and a controller candidate in one process, as in Kafka.

The composition root: everything is built here and handed down; nothing else builds.
"""

from __future__ import annotations

import asyncio
import logging
import os
import secrets
import time
import uuid
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import prometheus_client

import bridgehead
from broker_proxy.apis.base import ClientRequest
from broker_proxy.authentication.user_credentials import UserCredentialCache
from broker_proxy.connection_quotas import ConnectionLimits
from broker_proxy.learned_acls import LearnedAcls
from broker_proxy.logins import Listener
from broker_proxy.metadata_cache import MetadataCache
from broker_proxy.server import KafkaServer
from cluster_model.acls import AclSet
from cluster_model.broker_configs import EffectiveBrokerConfig
from cluster_model.image import BrokerRegistration, Endpoint
from cluster_model.records import ConfigResource
from cluster_model.session_state import SessionState
from cluster_model.znodes import DEFAULT_ENTITY, NodeAddress, encode_uuid
from controller.services import Office
from controller.store.port import Mutant
from envelope.messages import Hello, MetadataUpdate
from envelope.server import EnvelopeServer, serve_envelopes
from event_log.clock import SystemClock
from event_log.events import ImageAdvanced, MetricsSnapshot, ProtocolLevel, Started, Stopped
from metrics import names
from metrics.exposition import MetricsServer
from metrics.node_metrics import NodeMetrics
from node.apis import as_asker
from node.build import (
    build_authorization,
    build_connection_quotas,
    build_connection_rates,
    build_controller,
    build_event_log,
    build_forwarding,
    build_owner_requests,
    build_policies,
    build_request_lines,
    build_server,
    build_tokens,
    build_watcher,
    observe_connection_quotas,
    start_up_paths,
)
from node.config import NodeConfig
from node.direct_writes import DirectWrites, writes_directly
from node.freshness import Freshness
from node.office import OfficeFollower
from node.owner_requests import OwnerRequests
from node.security import (
    build_channel_security,
    build_gates,
    build_serde,
    build_zookeeper_access,
)

_log = logging.getLogger(__name__)
_SNAPSHOT_EVERY_S: Final = 10.0
_STOP_GRACE_S: Final = 2.0
_FLUSH_EVERY_S: Final = 0.05


class Node:
    """Built with its configuration, started once, stopped once."""

    def __init__(
        self, config: NodeConfig, data_dir: Path, mutants: frozenset[Mutant] = frozenset()
    ) -> None:
        self.config = config
        self._data_dir = data_dir
        self.incarnation = secrets.token_hex(6)
        self.clock = SystemClock()
        self.log = build_event_log(config, data_dir, self.incarnation, self.clock)
        self.request_lines = build_request_lines(config, data_dir)
        registry = prometheus_client.CollectorRegistry()
        self.metrics = NodeMetrics(
            registry,
            now_s=time.monotonic,
            samples=config.broker.int("metrics.num.samples"),
            window_ms=config.broker.int("metrics.sample.window.ms"),
            dialect=names.Dialect(config.own.metrics_dialect),
        )
        self.serde = build_serde(config)
        self.cache = MetadataCache(self._metadata_changed)
        self.users = UserCredentialCache()
        self.connection_rates = build_connection_rates(config)
        self.connection_quotas = build_connection_quotas(config)
        self.tokens = build_tokens(self)
        self.effective = EffectiveBrokerConfig.of(config.broker)
        self._stored: dict[str, Mapping[str, str]] = {}
        self._broker_epoch = -1
        self.cluster_id = ""
        self.session = SessionState.SUSPENDED
        self.authorization = build_authorization(self, data_dir, mutants)
        self.writes_directly = writes_directly(config, mutants)
        self.policies, self.record_policies = build_policies(config)
        self.zookeeper_access = build_zookeeper_access(config)
        self.controller = build_controller(self, mutants)
        self.learned_acls = LearnedAcls(self.controller.foreign.acl_seen, mutants)
        self.forwarding = build_forwarding(self)
        self.direct = DirectWrites(self, mutants) if self.writes_directly else None
        channel = build_channel_security(config)
        self._server_credentials = channel.server if channel else None
        self.office = OfficeFollower(
            broker_id=config.broker_id,
            controller=self.controller,
            forwarding=self.forwarding,
            cache=self.cache,
            hello=self._hello,
            on_update=self._updated,
            applied_zxid=lambda: self.freshness.applied_zxid,
            is_registered=lambda broker: self.watcher.is_registered(broker),
            pinned=config.own.pinned_controller,
            principal=config.inter_broker_principal,
            credentials=channel.client if channel else None,
        )
        self.freshness = Freshness(self, lambda: as_asker(self.config))
        self.watcher = build_watcher(self)
        self._metrics_server = MetricsServer(registry, self._health)
        self._envelopes: EnvelopeServer | None = None
        self._server: KafkaServer | None = None
        self.owner: OwnerRequests
        self._timers: list[asyncio.TimerHandle] = []
        self.listeners: tuple[Listener, ...] = ()

    # --- Life ----------------------------------------------------------------------------

    async def start(self) -> None:
        """Open everything and register; returns when clients are served.

        Raises:
            OSError: a port is taken. ConnectionLostError: no ZooKeeper. RegistrationRefusedError:
            the broker id is taken.
        """
        self.log.append(
            Started(incarnation=self.incarnation, version=bridgehead.__version__, pid=os.getpid())
        )
        level, supported = self.config.protocol_level, self.config.own.envelope_supported
        self.log.append(ProtocolLevel(level=level, envelope_supported=supported))
        self._schedule_flush()
        gates = build_gates(self)
        host, _, port = self.config.own.metrics_listener.rpartition(":")
        await self._metrics_server.start(host, int(port))
        grpc_host, _, grpc_port = self.config.own.grpc_listener.rpartition(":")
        self._grpc_host = grpc_host
        self._envelopes = await serve_envelopes(
            grpc_host,
            int(grpc_port),
            self.controller,
            self._server_credentials,
            self.controller.api_ranges,
        )
        await self.watcher.open()
        # Asked again after they were made: in an ensemble this broker's server may lag behind.
        while not await self.watcher.has_start_up_paths(start_up_paths(self)):
            await self.controller.prepare(encode_uuid(uuid.uuid4().bytes))
        if self.direct is not None:
            await self.direct.open()
        self.cluster_id = await self.watcher.cluster_id()
        for name in (DEFAULT_ENTITY, str(self.config.broker_id)):
            self._stored[name] = await self.watcher.read_config("brokers", name)
        self._reconfigure()
        server = self._server = build_server(self)
        self.listeners = tuple(
            [await server.bind(each, gates[each.name]) for each in self.config.listeners]
        )
        self.owner = build_owner_requests(self, server)
        await self.watcher.register(self._registration(), self._address())
        await self.watcher.watch()
        await server.serve()
        self._gauges(server)
        self._schedule_snapshot()

    def _registration(self) -> BrokerRegistration:
        endpoints = []
        for listener in self.listeners:
            host, port = self.config.advertised.get(listener.name, ("", 0))
            endpoints.append(
                Endpoint(
                    listener.name,
                    listener.security_protocol,
                    host or listener.host,
                    port or listener.port,
                )
            )
        return BrokerRegistration(self.config.broker_id, -1, tuple(endpoints), self.config.rack)

    def _address(self) -> NodeAddress:
        assert self._envelopes is not None
        host, _, port = self.config.own.grpc_advertised.rpartition(":")
        bound = self._envelopes.port
        return NodeAddress(f"{host or self._grpc_host}:{int(port or 0) or bound}", self.incarnation)

    def _hello(self) -> Hello:
        return Hello(self.config.broker_id, self.incarnation, self._broker_epoch, self.cluster_id)

    def _gauges(self, server: KafkaServer) -> None:
        gauge = self.metrics.gauge
        gauge(names.ACTIVE_CONTROLLER, lambda: self.controller.office is Office.ACTIVE)
        gauge(names.FORWARDING_QUEUE, lambda: self.forwarding.queue_length)
        gauge(names.CONNECTIONS, lambda: server.connection_count)
        self.metrics.connected_software(server.connected_software)
        observe_connection_quotas(self.metrics, self.connection_quotas)
        gauge(names.UNAUTHENTICATED_CONNECTIONS, lambda: server.unknown_count)
        gauge(names.ZOOKEEPER_CONNECTED, lambda: self.session is SessionState.CONNECTED)
        gauge(names.EVENT_QUEUE, lambda: self.controller.queue_length)

    async def stop(self, reason: str) -> None:
        """Resign, answer what is under way, leave ZooKeeper, close everything."""
        for timer in self._timers:
            timer.cancel()
        if self._server is not None:
            await self._server.stop(_STOP_GRACE_S)
        if self.direct is not None:
            await self.direct.close()
        await self.office.stop()
        self.freshness.stop()
        await self.controller.resign(reason)
        await self.watcher.close()
        if self._envelopes is not None:
            await self._envelopes.stop()
        await self._metrics_server.stop()
        for policies in filter(None, (self.policies, self.record_policies)):
            await policies.close()
        self.log.append(MetricsSnapshot(values=self.metrics.snapshot()))
        self.log.append(Stopped(reason=reason))
        self.log.close()
        self.authorization.close()
        self.request_lines.close()

    def _schedule_flush(self) -> None:
        """Events that no answer waits for reach the file soon as well."""
        self.log.flush()
        self.request_lines.flush()
        self.authorization.flush()
        timer = asyncio.get_running_loop().call_later(_FLUSH_EVERY_S, self._schedule_flush)
        self._timers[:1] = [timer]

    def _schedule_snapshot(self) -> None:
        self.log.append(MetricsSnapshot(values=self.metrics.snapshot()))
        timer = asyncio.get_running_loop().call_later(_SNAPSHOT_EVERY_S, self._schedule_snapshot)
        self._timers[1:] = [timer]

    # --- What happens --------------------------------------------------------------------

    def push(self, update: MetadataUpdate) -> None:
        """The controller in this process has news: see controller.publish.Peer."""
        self._updated(update)

    def _updated(self, update: MetadataUpdate) -> None:
        delay_ms, came_in = self.config.own.metadata_delay_ms, self.freshness.generation
        if delay_ms:
            asyncio.get_running_loop().call_later(delay_ms / 1000, self._apply, update, came_in)
        else:
            self._apply(update, came_in)

    def _apply(self, update: MetadataUpdate, came_in: int) -> None:
        if self.cache.apply(update) and update.complete:
            epoch = update.controller_epoch
            self.freshness.applied(update.zxid, came_in)
            self.log.append(ImageAdvanced(zxid=update.zxid, side="broker", epoch=epoch))

    def _metadata_changed(self) -> None:
        self.office.make_way()

    def registered(self, broker_epoch: int) -> None:
        """The broker session has registered, perhaps again."""
        again = self._broker_epoch >= 0
        self._broker_epoch = broker_epoch
        self.freshness.registered()
        if again:
            self.office.reopen_channel()

    def session_changed(self, state: SessionState) -> None:
        """The broker session came or went."""
        self.session = state
        self.freshness.session_changed(state)

    def office_changed(self, office: Office) -> None:
        """The candidate of this node stands, loads, works or has resigned."""
        _log.info("controller: %s", office.value)
        self.cache.controller_moved()

    def config_changed(self, resource: ConfigResource, configs: Mapping[str, str]) -> None:
        """ZooKeeper told of a changed config: this broker obeys its own, and users' passwords."""
        self.controller.foreign.config_seen(resource, configs)
        if resource.entity_type == "ips":
            self.connection_rates.update(resource.entity_name, configs)
        if resource.entity_type == "users":
            self.users.update(resource.entity_name, configs)
        if resource.entity_type == "brokers" and resource.entity_name in self._stored:
            self._stored[resource.entity_name] = configs
            self._reconfigure()

    def _reconfigure(self) -> None:
        self.effective = EffectiveBrokerConfig.of(
            self.config.broker,
            self._stored.get(DEFAULT_ENTITY, {}),
            self._stored.get(str(self.config.broker_id), {}),
        )
        for why in self.effective.ignored:
            _log.warning("a stored broker config is ignored: %s", why)
        quotas = self.connection_quotas
        quotas.limits = ConnectionLimits.of(self.effective, quotas.listeners)
        if self._server is not None:
            self._server.limits_changed()

    @property
    def acls(self) -> AclSet:
        """The ACLs that this node knows: in office the controller's, which are the newest."""
        image = self.controller.image if self.controller.office is Office.ACTIVE else None
        return self.learned_acls.acls if image is None else image.acls

    @property
    def broker_epoch(self) -> int:
        """The epoch of this broker's registration; -1 before the first."""
        return self._broker_epoch

    # --- What can be asked ---------------------------------------------------------------

    def ready(self) -> dict[str, Any]:
        """Return what a node says of itself when it serves."""
        assert self._envelopes is not None
        return {
            "id": self.config.broker_id,
            "pid": os.getpid(),
            "incarnation": self.incarnation,
            "listeners": {each.name: f"{each.host}:{each.port}" for each in self.listeners},
            "metrics_url": f"http://{self.config.own.metrics_listener.rpartition(':')[0]}"
            f":{self._metrics_server.port}/metrics",
            "grpc": self._address().grpc,
        }

    def state(self) -> dict[str, Any]:
        """Return who this node thinks is controller, and how it fares."""
        known = self.cache.controller_id
        current = known == self.office.controller_id
        return {
            "id": self.config.broker_id,
            "cluster_id": self.cluster_id,
            "is_controller": self.controller.office is Office.ACTIVE,
            "office": self.controller.office.value,
            "controller_id": known if current and known in self.cache.brokers else None,
            "controller_epoch": self.controller.epoch or self.cache.controller_epoch,
            "brokers": sorted(self.cache.brokers),
            "topics": len(self.cache.topics),
            "zxid": self.cache.zxid,
            "session": self.session.value,
            "protocol_level": self.config.protocol_level,
            "envelope_supported": self.config.own.envelope_supported,
            "writes_directly": self.writes_directly,
        }

    async def expire(self, session: str) -> None:
        """Have ZooKeeper expire one of the two sessions (chaos)."""
        await (self.controller.expire() if session == "controller" else self.watcher.expire())

    async def answer(self, request: ClientRequest) -> bytes | None:
        """Answer what came wrapped in a client's Envelope; None: its connection would be closed."""
        assert self._server is not None
        return await self._server.dispatcher.answer(request)

    async def resign(self) -> None:
        """Give up office."""
        await self.controller.resign("asked to")

    def stand_for(self, controller_id: int | None) -> None:
        """Pin the controller to one broker, or to none."""
        self.office.pinned = controller_id
        self.office.make_way()
        if self.office.controller_id is None:
            self.office.consider_standing()

    def _health(self) -> tuple[bool, str]:
        silent_s = time.monotonic() - self.watcher.last_word_s
        if silent_s * 1000 > self.config.session_timeout_ms:
            # Whoever was controller may be so no more, and could not write in any case.
            return False, "ZooKeeper is silent for longer than a session lasts"
        controller_id = self.state()["controller_id"]
        if controller_id is None:
            return False, "no controller is known"
        return True, f"broker {controller_id} is controller"
