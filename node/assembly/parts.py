"""Builds the parts of a node. Each part gets exactly the other parts that it needs.

Broker and controller candidate share one process, as in Kafka. Everything is built here or in the
modules imported here; `node.assembly.server` adds the Kafka listeners once the cluster id is known.
"""

from __future__ import annotations

import logging
import random
import secrets
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Final

from bridgehead.fault_rules import FaultRules
from broker_proxy.authentication.authenticator import SaslAuthenticator
from broker_proxy.connections.connection_quotas import ConnectionQuotas
from broker_proxy.connections.connection_rates import ConnectionRates
from broker_proxy.connections.server import KafkaServer
from broker_proxy.forwarding.manager import ForwardingManager
from broker_proxy.metadata.cache import MetadataCache
from broker_proxy.metadata.read_consistency import (
    CLUSTER,
    MetadataUpdates,
    ReadConsistency,
    waits_for_updates,
)
from broker_proxy.metadata.session import Callbacks, ZooKeeperWatcher
from broker_proxy.metadata.stored_metadata import StoredMetadata
from broker_proxy.migration.lifecycle import UNREGISTERED
from broker_proxy.requests.fault_injection import link_wrapper
from cluster_model.configs.broker_configs import CurrentConfig
from cluster_model.direct_writes import DIRECT_PARENT
from cluster_model.quirks import quirks_of
from cluster_model.records import ConfigResource
from cluster_model.session_state import SessionState
from cluster_model.znodes.acls import ACL_PATHS
from cluster_model.znodes.tokens import TOKEN_PATHS
from controller.apis import build_admin_apis
from controller.apis.base import ApiSettings
from controller.apis.create_topics import new_topic_id
from controller.controller import Controller
from controller.direct.writer import DirectServices, DirectWriter
from controller.requests.request_log import ForwardedRequestLog
from controller.services import ControllerState, Services, Settings
from controller.store.zookeeper import ZooKeeperStore
from envelope.server import EnvelopeServer
from node.assembly.controller_follower import ControllerFollower
from node.assembly.current_state import ActiveImage, BrokerConfigs, BrokerState
from node.assembly.data_plane import DataPlane, build_data_plane
from node.assembly.direct_writes import DirectWrites
from node.assembly.instruments import Instruments, build_instruments
from node.assembly.migration import Migration, build_migration
from node.assembly.policies import NodePolicies, load_policies, load_record_policies
from node.assembly.security import Security, build_security
from node.assembly.signals import Signals
from node.collaborators import PRODUCTION, Collaborators
from node.config import NodeConfig

_log = logging.getLogger(__name__)
# A message over gRPC costs 0.1 to 0.2 ms, whatever its size. So a metadata update waits this long
# for replies that can be sent in the same message.
_UPDATE_DELAY_S: Final = 0.001


@dataclass(frozen=True, slots=True)
class BrokerParts:
    """The broker half of a node, without its listeners."""

    state: BrokerState
    configs: BrokerConfigs
    quotas: ConnectionQuotas
    rates: ConnectionRates
    cache: MetadataCache
    watcher: ZooKeeperWatcher
    forwarding: ForwardingManager
    consistency: ReadConsistency
    updates: MetadataUpdates
    data_plane: DataPlane | None  # None with bridgehead.data.plane=false
    fault_rules: FaultRules | None  # None: this broker does not allow them

    @property
    def stored(self) -> StoredMetadata:
        """Reads of ZooKeeper for a client's request."""
        return StoredMetadata(self.watcher)


@dataclass(frozen=True, slots=True)
class Parts:
    """One node."""

    config: NodeConfig
    instruments: Instruments
    security: Security
    broker: BrokerParts
    controller: Controller
    follower: ControllerFollower
    direct: DirectWrites | None  # None: this broker does not write directly
    migration: Migration | None  # None: this broker does not migrate to KRaft
    data_dir: Path
    policies: NodePolicies | None  # of the controller
    record_policies: NodePolicies | None  # of the broker as a partition leader
    start_up_paths: tuple[str, ...]
    new_authenticator: Callable[..., SaslAuthenticator]
    serve_envelopes: Callable[..., Awaitable[EnvelopeServer]]
    new_server: Callable[..., KafkaServer]


def build_parts(
    config: NodeConfig, data_dir: Path, collaborators: Collaborators = PRODUCTION
) -> Parts:
    """Build a node. This opens its logs, but nothing else.

    Raises:
        NodeConfigError: a file or class that the configuration names cannot be used.
        OSError: a folder cannot be written.
    """
    state = BrokerState(config.broker_id, secrets.token_hex(6))
    instruments = build_instruments(config, data_dir, state.incarnation)
    signals, active_image = Signals(), ActiveImage()
    learned_acls = collaborators.learned_acls(signals.acl_read)
    security = build_security(config, instruments, signals, active_image, learned_acls)
    policies, record_policies = _load_policies(config)
    migration = build_migration(config, security.serde, collaborators)
    broker = _build_broker(
        config, data_dir, state, instruments, security, signals, migration, collaborators
    )
    paths = _start_up_paths(config, security)
    controller = collaborators.controller(
        _controller_settings(config, paths),
        _controller_services(config, instruments, security, broker, policies, collaborators.store),
    )
    follower = ControllerFollower(
        state=state,
        controller=controller,
        forwarding=broker.forwarding,
        cache=broker.cache,
        on_update=broker.updates.push,
        applied_zxid=lambda: broker.consistency.applied_zxid,
        is_registered=broker.watcher.is_registered,
        read_controller_id=broker.watcher.read_controller_id,
        pinned=config.bridgehead.pinned_controller,
        principal=config.inter_broker_principal,
        credentials=security.channel.client if security.channel else None,
        new_channel=collaborators.channel,
        kraft=migration.link if migration is not None else None,
    )
    direct = _build_direct_writes(
        config, instruments, security, broker, controller, policies, collaborators
    )
    _connect(signals, active_image, security, broker, controller, follower)
    return Parts(
        config,
        instruments,
        security,
        broker,
        controller,
        follower,
        direct,
        migration,
        data_dir,
        policies,
        record_policies,
        paths,
        collaborators.authenticator,
        collaborators.serve_envelopes,
        collaborators.server,
    )


def _load_policies(config: NodeConfig) -> tuple[NodePolicies | None, NodePolicies | None]:
    """Return the policies of the controller, and those of the broker as a partition leader."""
    named, limit_ms = config.broker.originals, config.bridgehead.policy_timeout_ms
    return load_policies(named, limit_ms), load_record_policies(named, limit_ms)


def _connect(
    signals: Signals,
    active_image: ActiveImage,
    security: Security,
    broker: BrokerParts,
    controller: Controller,
    follower: ControllerFollower,
) -> None:
    """Subscribe the parts to each other's changes, in the order in which they react."""
    active_image.controller = controller
    signals.session_changed.subscribe(
        broker.state.session_changed, broker.consistency.session_changed
    )
    signals.registered.subscribe(
        broker.state.registered, broker.consistency.registered, follower.registered
    )
    signals.controller_changed.subscribe(follower.controller_changed)
    signals.metadata_changed.subscribe(follower.resign_for_pinned, follower.forward_to_kraft)
    signals.users_read.subscribe(security.users.replace_all)
    if broker.data_plane is not None:
        signals.metadata_changed.subscribe(broker.data_plane.metadata_changed)
        quotas = broker.data_plane.quotas
        signals.users_read.subscribe(partial(quotas.replace_all, "users"))
        signals.client_ids_read.subscribe(partial(quotas.replace_all, "clients"))

    def config_changed(resource: ConfigResource, configs: Mapping[str, str]) -> None:
        if resource.entity_type == "ips":
            broker.rates.update(resource.entity_name, configs)
        if resource.entity_type == "users":
            security.users.update(resource.entity_name, configs)
        if broker.data_plane is not None:
            broker.data_plane.config_changed(resource, configs)

    external = controller.external_writes
    signals.config_changed.subscribe(
        external.config_seen, config_changed, broker.configs.config_changed
    )
    signals.acl_read.subscribe(external.acl_seen)
    signals.token_read.subscribe(external.token_seen)
    signals.zxid_applied.subscribe(
        partial(controller.own_broker_applied, broker.state.incarnation),
        lambda _zxid: follower.report_applied(),
    )


def _start_up_paths(config: NodeConfig, security: Security) -> tuple[str, ...]:
    """Return the optional persistent paths that this cluster needs. They are created at start."""
    tokens = TOKEN_PATHS if config.token_secret is not None else ()
    direct = (DIRECT_PARENT,) if config.writes_directly else ()
    return (ACL_PATHS if security.authorization.is_on else ()) + tokens + direct


def _build_broker(
    config: NodeConfig,
    data_dir: Path,
    state: BrokerState,
    instruments: Instruments,
    security: Security,
    signals: Signals,
    migration: Migration | None,
    collaborators: Collaborators,
) -> BrokerParts:
    rates, quotas = _build_connection_limits(config)
    cache = MetadataCache(signals.metadata_changed)
    watcher = _build_watcher(config, instruments, security, signals, rates, collaborators.watcher)
    rules = FaultRules() if config.bridgehead.faults_allowed else None
    forwarding = collaborators.forwarding(
        broker_id=state.broker_id,
        incarnation=state.incarnation,
        serde=security.serde,
        request_timeout_ms=config.broker.int("request.timeout.ms"),
        log=instruments.log,
        now_s=time.monotonic,
        redirected=instruments.metrics.message_redirected,
        wrap_link=link_wrapper(rules, security.serde, instruments.log),
    )
    consistency = ReadConsistency(
        config.bridgehead, config.broker_id, cache, watcher, signals.zxid_applied
    )
    updates = MetadataUpdates(
        config.bridgehead.metadata_delay_ms, cache, consistency, instruments.log
    )
    configs = BrokerConfigs(config.broker, quotas)
    return BrokerParts(
        state,
        configs,
        quotas,
        rates,
        cache,
        watcher,
        forwarding,
        consistency,
        updates,
        build_data_plane(
            config,
            data_dir,
            state,
            configs,
            cache,
            watcher,
            forwarding,
            instruments,
            lambda: UNREGISTERED if migration is None else migration.lifecycle.epoch,
            collaborators.partitions,
            collaborators.groups,
        ),
        rules,
    )


def _build_watcher(
    config: NodeConfig,
    instruments: Instruments,
    security: Security,
    signals: Signals,
    rates: ConnectionRates,
    new_watcher: Callable[..., ZooKeeperWatcher],
) -> ZooKeeperWatcher:
    return new_watcher(
        config.zookeeper_connect,
        session_timeout_ms=config.session_timeout_ms,
        connection_timeout_ms=config.connection_timeout_ms,
        callbacks=Callbacks(
            controller_changed=signals.controller_changed,
            config_changed=signals.config_changed,
            users_read=signals.users_read,
            client_ids_read=signals.client_ids_read
            if config.bridgehead.data_plane_enabled
            else None,
            ips_read=rates.replace_all,
            registered=signals.registered,
            session_changed=signals.session_changed,
            tokens=security.tokens if config.token_secret is not None else None,
            acls=security.learned_acls if security.authorization.is_on else None,
        ),
        log=instruments.log,
        now_ms=instruments.clock.wall_ms,
        access=security.zookeeper.broker,
        on_reply=instruments.metrics.zookeeper_replied,
    )


def _build_connection_limits(config: NodeConfig) -> tuple[ConnectionRates, ConnectionQuotas]:
    samples = config.broker.int("quota.window.num")
    window_s = config.broker.int("quota.window.size.seconds")
    rates = ConnectionRates(samples, window_s, time.monotonic)
    quotas = ConnectionQuotas(
        [listener.name for listener in config.listeners],
        config.inter_broker_listener,
        samples=samples,
        window_s=window_s,
        now_s=time.monotonic,
    )
    return rates, quotas


def _controller_settings(config: NodeConfig, paths: tuple[str, ...]) -> Settings:
    return Settings(
        broker_id=config.broker_id,
        session_timeout_ms=config.session_timeout_ms,
        connection_timeout_ms=config.connection_timeout_ms,
        request_timeout_ms=config.broker.int("request.timeout.ms"),
        start_up_paths=paths,
        token_check_interval_ms=config.broker.long("delegation.token.expiry.check.interval.ms"),
        waits_for_brokers=config.bridgehead.metadata_blocking == CLUSTER,
        stores_records=config.bridgehead.data_plane_enabled,
        update_delay_s=0.0 if waits_for_updates(config.bridgehead) else _UPDATE_DELAY_S,
        mutation_quota_samples=config.broker.int("controller.quota.window.num"),
        mutation_quota_window_s=config.broker.int("controller.quota.window.size.seconds"),
    )


def api_settings(config: NodeConfig, current: CurrentConfig) -> ApiSettings:
    """Return the settings of the controller's APIs. `current` returns the effective configs."""
    return ApiSettings(
        config=config.broker,
        current=current,
        token_secret=config.token_secret,
        has_authorizer=config.authorizer is not None,
        stores_records=config.bridgehead.data_plane_enabled,
    )


def _controller_services(
    config: NodeConfig,
    instruments: Instruments,
    security: Security,
    broker: BrokerParts,
    policies: NodePolicies | None,
    store: Callable[..., ZooKeeperStore],
) -> Services:
    source, metrics = random.Random(secrets.randbits(64)), instruments.metrics
    now_ms = instruments.clock.wall_ms

    def state_changed(state: ControllerState) -> None:
        _log.info("controller: %s", state.value)
        broker.cache.controller_moved()

    def new_store(on_state: Callable[[SessionState], None]) -> ZooKeeperStore:
        return store(
            config.zookeeper_connect,
            session_timeout_ms=config.session_timeout_ms,
            on_state=on_state,
            log=instruments.log,
            now_s=time.monotonic,
            access=security.zookeeper.controller,
            on_reply=metrics.zookeeper_replied,
            cluster_id=lambda: broker.state.cluster_id,
        )

    return Services(
        new_store=new_store,
        apis=build_admin_apis(api_settings(config, broker.configs.current)),
        serde=security.serde,
        may_send_envelopes=security.authorization.may_send_envelopes,
        bind_authorize=security.authorization.bind,
        unclean_election=broker.configs.unclean_election,
        random=source,
        new_topic_id=lambda: new_topic_id(source),
        log=instruments.log,
        request_log=ForwardedRequestLog(
            instruments.request_log, now_s=time.monotonic, wall_ms=now_ms
        ),
        now_s=time.monotonic,
        now_ms=now_ms,
        authorization_failed=metrics.authorization_failed,
        envelope_rejected=metrics.envelope_rejected,
        channel_rejected=metrics.channel_rejected,
        state_changed=state_changed,
        own_broker=broker.updates,
        known_states=broker.cache,
        own_floor=lambda: (
            (config.broker_id, broker.state.incarnation),
            broker.forwarding.lowest_unfinished,
        ),
        policies=policies,
        quirks=quirks_of(config.broker.originals),
        understands_envelopes=config.bridgehead.envelope_supported,
    )


def _build_direct_writes(
    config: NodeConfig,
    instruments: Instruments,
    security: Security,
    broker: BrokerParts,
    controller: Controller,
    policies: NodePolicies | None,
    collaborators: Collaborators,
) -> DirectWrites | None:
    if not config.writes_directly:
        return None
    session = collaborators.direct_session(
        config.zookeeper_connect,
        broker_id=config.broker_id,
        session_timeout_ms=config.session_timeout_ms,
        connection_timeout_ms=config.connection_timeout_ms,
        access=security.zookeeper.controller,
        log=instruments.log,
        on_reply=instruments.metrics.zookeeper_replied,
    )
    services = DirectServices(
        bind_authorize=security.authorization.bind,
        # A direct write is checked against the ACLs that the broker has read, even if the
        # controller of this process is active.
        acls=lambda: security.learned_acls.acls,
        acls_zxid=lambda: security.learned_acls.as_of,
        policies=policies,
        log=instruments.log,
        now_s=time.monotonic,
        now_ms=instruments.clock.wall_ms,
    )

    async def read_acls_and_tokens(zxid: int) -> None:
        await broker.watcher.read_acls_and_tokens(zxid)
        await controller.external_writes.caught_up()

    return DirectWrites(
        config,
        DirectWriter(session, services),
        session,
        apis=build_admin_apis(api_settings(config, broker.configs.current)),
        next_identity=broker.forwarding.next_identity,
        read_acls_and_tokens=read_acls_and_tokens,
    )
