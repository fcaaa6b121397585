"""The large parts of a node, built with what they need of it."""

from __future__ import annotations

import random
import secrets
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from broker_proxy.admission import Admission
from broker_proxy.connection_quotas import ConnectionQuotas
from broker_proxy.connection_rates import ConnectionRates
from broker_proxy.dispatch import Dispatcher
from broker_proxy.forwarding import ForwardingManager
from broker_proxy.logins import Logins
from broker_proxy.request_log import RequestLog
from broker_proxy.server import LOGIN_FRAME_BYTES_MAX, KafkaServer, Limits
from broker_proxy.token_cache import TokenCache, Tokens
from broker_proxy.watcher import Callbacks, ZooKeeperWatcher
from cluster_model.acl_znodes import ACL_PATHS
from cluster_model.direct_writes import DIRECT_PARENT
from cluster_model.quirks import quirks_of
from cluster_model.request_lines import REQUEST_LOGGER
from cluster_model.token_znodes import TOKEN_PATHS
from controller.apis.create_topics import new_topic_id
from controller.controller import Controller
from controller.request_log import ForwardedRequestLog
from controller.services import Office, Services, Settings
from controller.store.port import Mutant
from event_log.clock import SystemClock
from event_log.text_log import Level, TextLog
from event_log.writer import FileEventLog
from metrics import names
from metrics.node_metrics import NodeMetrics
from node import authorizer_log
from node.apis import build_admin_apis, build_local_apis, build_split_apis
from node.authorization import Authorization
from node.config import NodeConfig
from node.freshness import CLUSTER
from node.owner_requests import OwnerRequests
from node.policies import NodePolicies, load_policies, load_record_policies
from node.seeded_bugs import AllowBeforeDeny

if TYPE_CHECKING:
    from node.node import Node


def build_authorization(node: Node, data_dir: Path, mutants: frozenset[Mutant]) -> Authorization:
    """Return who says what is allowed; its log is a file beside the node's events."""
    authorizer = node.config.authorizer
    if authorizer is not None and Mutant.ALLOW_BEFORE_DENY in mutants:
        authorizer = AllowBeforeDeny(authorizer)
    level = Level.OFF if authorizer is None else Level[node.config.own.authorizer_log]
    lines = TextLog(data_dir / "logs" / authorizer_log.FILE_NAME, authorizer_log.LOGGER, level)
    audit = authorizer_log.AuthorizerLog(lines, node.clock.wall_ms)
    return Authorization(authorizer, lambda: node.acls, audit)


def build_policies(config: NodeConfig) -> tuple[NodePolicies | None, NodePolicies | None]:
    """Return the topic policies of the candidate for controller, and of the partitions' leader."""
    named, limit_ms = config.broker.originals, config.own.policy_timeout_ms
    return load_policies(named, limit_ms), load_record_policies(named, limit_ms)


def build_forwarding(node: Node) -> ForwardingManager:
    """Return what carries this broker's writes to the controller."""
    return ForwardingManager(
        broker_id=node.config.broker_id,
        incarnation=node.incarnation,
        serde=node.serde,
        request_timeout_ms=node.config.broker.int("request.timeout.ms"),
        log=node.log,
        now_s=time.monotonic,
        broker_epoch=lambda: node.broker_epoch,
        redirected=node.metrics.message_redirected,
    )


def build_event_log(
    config: NodeConfig, data_dir: Path, boot: str, clock: SystemClock
) -> FileEventLog:
    """Return this boot's event log. Raises OSError: its folder cannot be written."""
    evidence = config.own.evidence_dir
    return FileEventLog(
        Path(evidence) if evidence else data_dir / "events",
        run_id=config.own.run_id or "run",
        node=str(config.broker_id),
        boot=boot,
        host_boot_id=_host_boot_id(),
        clock=clock,
    )


def _host_boot_id() -> str:
    """Events of one host can be ordered by its monotonic clock; this names the clock."""
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()[:8]
    except OSError:
        return "unknown"


def build_connection_rates(config: NodeConfig) -> ConnectionRates:
    """Return what says how many connections an address may open."""
    samples = config.broker.int("quota.window.num")
    window_s = config.broker.int("quota.window.size.seconds")
    return ConnectionRates(samples, window_s, time.monotonic)


def build_connection_quotas(config: NodeConfig) -> ConnectionQuotas:
    """Return what says how many may be connected; its limits come with the configs in force."""
    return ConnectionQuotas(
        [listener.name for listener in config.listeners],
        config.inter_broker_listener,
        samples=config.broker.int("quota.window.num"),
        window_s=config.broker.int("quota.window.size.seconds"),
        now_s=time.monotonic,
    )


def observe_connection_quotas(metrics: NodeMetrics, quotas: ConnectionQuotas) -> None:
    """Expose what Kafka tells of the connections that came."""
    metrics.gauge(names.BROKER_ACCEPT_RATE, quotas.broker_accept_rate)
    metrics.labelled(names.LISTENER_ACCEPT_RATE, quotas.accept_rates)
    metrics.labelled(names.ACCEPT_THROTTLE_TIME, quotas.throttle_times_ms)
    metrics.labelled(names.IP_ACCEPT_THROTTLE_TIME, quotas.address_throttle_times_ms)


def build_request_lines(config: NodeConfig, data_dir: Path) -> TextLog:
    """Return kafka-request.log, in which both halves of the node write."""
    level = Level[config.own.request_log]
    return TextLog(data_dir / "logs" / "kafka-request.log", REQUEST_LOGGER, level)


def build_tokens(node: Node) -> TokenCache:
    """Return the delegation tokens that this broker knows, for logins and descriptions."""

    def in_office() -> Tokens | None:
        image = node.controller.image if node.controller.office is Office.ACTIVE else None
        return None if image is None else image.tokens

    return TokenCache(
        node.config.token_secret,
        new_salt=secrets.token_bytes,
        in_office=in_office,
        seen=lambda token_id, token: node.controller.foreign.token_seen(token_id, token),
    )


def start_up_paths(node: Node) -> tuple[str, ...]:
    """Return the paths that only some clusters need."""
    tokens = TOKEN_PATHS if node.tokens.secret is not None else ()
    direct = (DIRECT_PARENT,) if node.writes_directly else ()
    return (ACL_PATHS if node.authorization.is_on else ()) + tokens + direct


def build_watcher(node: Node) -> ZooKeeperWatcher:
    """Return the broker session: it registers, reads and is told of changes."""
    config = node.config
    return ZooKeeperWatcher(
        config.zookeeper_connect,
        session_timeout_ms=config.session_timeout_ms,
        connection_timeout_ms=config.connection_timeout_ms,
        callbacks=Callbacks(
            controller_changed=node.office.controller_changed,
            config_changed=node.config_changed,
            users_read=node.users.replace_all,
            ips_read=node.connection_rates.replace_all,
            registered=node.registered,
            session_changed=node.session_changed,
            tokens=node.tokens if node.tokens.secret is not None else None,
            acls=node.learned_acls if node.authorization.is_on else None,
        ),
        log=node.log,
        now_ms=node.clock.wall_ms,
        access=node.zookeeper_access.broker,
        on_answer=node.metrics.zookeeper_answered,
    )


def build_controller(node: Node, mutants: frozenset[Mutant]) -> Controller:
    """Return this node's candidate for controller."""
    config, source = node.config, random.Random(secrets.randbits(64))
    return Controller(
        Settings(
            broker_id=config.broker_id,
            zookeeper_connect=config.zookeeper_connect,
            session_timeout_ms=config.session_timeout_ms,
            connection_timeout_ms=config.connection_timeout_ms,
            request_timeout_ms=config.broker.int("request.timeout.ms"),
            start_up_paths=start_up_paths(node),
            zookeeper_access=node.zookeeper_access.controller,
            token_check_interval_ms=config.broker.long("delegation.token.expiry.check.interval.ms"),
            answers_everywhere=config.own.metadata_blocking == CLUSTER,
            mutation_quota_samples=config.broker.int("controller.quota.window.num"),
            mutation_quota_window_s=config.broker.int("controller.quota.window.size.seconds"),
        ),
        Services(
            apis=build_admin_apis(config, lambda: node.effective, mutants),
            serde=node.serde,
            may_send_envelopes=node.authorization.may_send_envelopes,
            bind_authorize=node.authorization.bind,
            unclean_election=lambda image, topic: _unclean_election(node, image, topic),
            random=source,
            new_topic_id=lambda: new_topic_id(source),
            log=node.log,
            request_log=ForwardedRequestLog(
                node.request_lines, now_s=time.monotonic, wall_ms=node.clock.wall_ms
            ),
            now_s=time.monotonic,
            now_ms=node.clock.wall_ms,
            authorization_failed=node.metrics.authorization_failed,
            envelope_refused=node.metrics.envelope_refused,
            channel_refused=node.metrics.channel_refused,
            zookeeper_answered=node.metrics.zookeeper_answered,
            office_changed=node.office_changed,
            own_broker=node,
            policies=node.policies,
            mutants=mutants,
            quirks=quirks_of(config.broker.originals),
            understands_envelopes=config.own.envelope_supported,
        ),
    )


def _unclean_election(node: Node, image: Any, topic: str) -> bool:
    name = "unclean.leader.election.enable"
    override = image.config("topics", topic).get(name)
    if override is not None:
        return str(override).strip().lower() == "true"
    return node.effective.value(name) is True


def build_server(node: Node) -> KafkaServer:
    """Return the Kafka listeners, which serve once the cluster id is known."""
    config = node.config
    dispatcher = Dispatcher(
        local_apis=build_local_apis(node, node.cluster_id, lambda: node.effective),
        split_apis=build_split_apis(node, lambda: node.effective),
        forwarding=node.forwarding,
        forwarding_enabled=config.forwards,
        is_controller=lambda: node.office.controller_id == config.broker_id,
        image_zxid=lambda: node.cache.zxid,
        read_gate=node.freshness.read_gate(),
        write_directly=node.direct.write if node.direct is not None else None,
        now_ns=time.monotonic_ns,
        log=node.log,
        metrics=node.metrics,
    )
    return KafkaServer(
        dispatcher=dispatcher,
        logins=Logins(node.log, node.metrics, node.clock.wall_ms),
        limits=Limits(
            frame_bytes_max=config.broker.int("socket.request.max.bytes"),
            idle_ms_max=config.broker.long("connections.max.idle.ms"),
            login_frame_bytes_max=min(
                config.broker.int("sasl.server.max.receive.size"), LOGIN_FRAME_BYTES_MAX
            ),
            failed_login_delay_ms=config.broker.int("connection.failed.authentication.delay.ms"),
        ),
        request_prefix=f"{config.broker_id}.{node.incarnation}",
        log=node.log,
        admission=Admission(node.connection_quotas, node.connection_rates, time.monotonic),
        request_log=RequestLog(
            node.request_lines, now_ns=time.monotonic_ns, wall_ms=node.clock.wall_ms
        ),
        now_s=time.monotonic,
        now_ns=time.monotonic_ns,
    )


def build_owner_requests(node: Node, server: KafkaServer) -> OwnerRequests:
    """Return what the owner of the data directory may ask for, once the server is built."""
    prefix = f"{node.config.broker_id}.{node.incarnation}"
    return OwnerRequests(server.dispatcher, node.users, prefix, node.config.listeners[0])
