"""Builds the Kafka server of a node, without its listeners, once the cluster id is known."""

from __future__ import annotations

import time
from functools import partial

from broker_proxy.apis.base import LocalApi
from broker_proxy.connections.admission import Admission
from broker_proxy.connections.client_socket import (
    LOGIN_FRAME_BYTES_MAX,
    ClientSocket,
    ConnectionServices,
    Limits,
)
from broker_proxy.connections.logins import Logins
from broker_proxy.connections.request_log import RequestLog
from broker_proxy.connections.request_memory import RequestMemory
from broker_proxy.connections.server import KafkaServer
from broker_proxy.requests.dispatch import Dispatcher
from broker_proxy.requests.fault_injection import FaultyDispatcher
from broker_proxy.requests.relay import Relay
from broker_proxy.requests.split import Writes
from node.assembly.local_apis import build_local_apis, build_split_apis
from node.assembly.parts import Parts
from node.config import NodeConfig
from node.descriptors import current_shares


def build_server(parts: Parts) -> KafkaServer:
    """Return the server; it has no listeners yet."""
    config, broker, instruments = parts.config, parts.broker, parts.instruments
    log, follower, prefix = instruments.log, parts.follower, broker.state.request_prefix
    local_apis: dict[int, LocalApi] = {}
    rules, quotas = broker.fault_rules, broker.data_plane.quotas if broker.data_plane else None

    def may_overlap() -> bool:
        """Return whether writes of one connection may be executed at the same time.

        They may not if a policy, or a quota on mutations or request time, depends on their order.
        A broker without a data plane does not know the quotas, so it never permits an overlap.
        """
        return not (
            quotas is None
            or quotas.mutations.is_enabled
            or quotas.request_time.is_enabled
            or parts.policies is not None
        )

    dispatcher = (Dispatcher if rules is None else partial(FaultyDispatcher, rules))(
        local_apis=local_apis,
        writes=_build_writes(parts),
        forwarding_enabled=config.forwards,
        is_controller=lambda: follower.is_controller,
        image_zxid=lambda: broker.cache.zxid,
        read_gate=broker.consistency.read_gate(
            broker.forwarding.forward,
            config.own_client,
            prefix,
            config.broker.int("request.timeout.ms") / 1000,
        ),
        routes=config.routes,
        request_time=quotas.request_time if quotas else None,
        may_overlap=may_overlap,
        now_ns=time.monotonic_ns,
        log=log,
        metrics=instruments.metrics,
    )
    # The APIs are added later, because Envelope passes its inner request to the dispatcher.
    local_apis |= build_local_apis(parts, dispatcher.handle)
    wall_ms = instruments.clock.wall_ms
    limits = _limits(config)
    services = ConnectionServices(
        dispatcher=dispatcher,
        logins=Logins(log, instruments.metrics, wall_ms, parts.new_authenticator),
        limits=limits,
        log=log,
        request_log=RequestLog(instruments.request_log, now_ns=time.monotonic_ns, wall_ms=wall_ms),
        memory=_memory(config, limits.frame_bytes_max),
        now_s=time.monotonic,
        now_ns=time.monotonic_ns,
    )
    shares = current_shares(len(broker.quotas.listeners))
    return parts.new_server(
        services=services,
        request_prefix=prefix,
        admission=_build_admission(parts, shares.waiting),
        clients_max=shares.clients,
    )


def _build_admission(parts: Parts, waiting_max: int) -> Admission:
    quotas, rates = parts.broker.quotas, parts.broker.rates
    rates.kept_waiting_max = waiting_max
    return Admission(quotas, rates, time.monotonic, waiting_max)


def _build_writes(parts: Parts) -> Writes:
    broker = parts.broker

    def image_zxid() -> int:
        return broker.cache.zxid

    relay = Relay(
        broker.forwarding,
        is_controller=lambda: parts.follower.is_controller,
        image_zxid=image_zxid,
        now_ns=time.monotonic_ns,
        metrics=parts.instruments.metrics,
    )
    return Writes(
        relay,
        build_split_apis(parts),
        image_zxid=image_zxid,
        write_directly=parts.direct.write if parts.direct is not None else None,
    )


def _limits(config: NodeConfig) -> Limits:
    return Limits(
        frame_bytes_max=config.broker.int("socket.request.max.bytes"),
        idle_ms_max=config.broker.long("connections.max.idle.ms"),
        login_frame_bytes_max=min(
            config.broker.int("sasl.server.max.receive.size"), LOGIN_FRAME_BYTES_MAX
        ),
        failed_login_delay_ms=config.broker.int("connection.failed.authentication.delay.ms"),
    )


def _memory(config: NodeConfig, frame_bytes_max: int) -> RequestMemory[ClientSocket]:
    bytes_max = config.broker.long("queued.max.request.bytes")
    if bytes_max <= 0:  # No limit in Kafka; a node always has one (docs/differences.md).
        bytes_max = frame_bytes_max
    return RequestMemory(bytes_max, frame_bytes_max)
