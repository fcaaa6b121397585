"""Starts a node, reports its status, and stops it."""

from __future__ import annotations

import asyncio
import logging
import os
import time
import uuid
from functools import partial
from typing import Any, Final

import bridgehead
from broker_proxy.authentication.listener_security import Listener
from broker_proxy.connections.server import KafkaServer
from cluster_model.image import BrokerRegistration, Endpoint
from cluster_model.session_state import SessionState
from cluster_model.znodes.layout import NodeAddress, encode_uuid
from controller.services import ControllerState
from envelope.server import EnvelopeServer
from event_log.events import MetricsSnapshot, ProtocolLevel, Started, Stopped
from metrics import names
from metrics.exposition import MetricsServer
from node.assembly.parts import Parts
from node.assembly.security import build_login_requirements
from node.assembly.server import build_server
from node.run.log_flusher import LogFlusher

_log = logging.getLogger(__name__)
_SNAPSHOT_EVERY_S: Final = 10.0
_STOP_GRACE_S: Final = 2.0
_SKIPPED_SHOWN: Final = 20  # the log names the others


class Node:
    """A node. It is built from its parts, started once, and stopped once."""

    def __init__(self, parts: Parts) -> None:
        self._parts = parts
        self._metrics_server = MetricsServer(parts.instruments.registry, self._health)
        self._envelopes: EnvelopeServer | None = None
        self._server: KafkaServer | None = None
        self._snapshot_timer: asyncio.TimerHandle | None = None
        self._listeners: tuple[Listener, ...] = ()
        self._flusher: LogFlusher | None = None

    async def start(self) -> KafkaServer:
        """Open everything and register; return the server once it serves clients.

        Raises:
            OSError: a port is taken, or the logs belong to another cluster or broker.
            ConnectionLostError: ZooKeeper does not answer at the start. If the connection breaks
                later, the start continues after a reconnect, as in Kafka.
            RegistrationRejectedError: the broker id is taken.
        """
        parts, config, state = self._parts, self._parts.config, self._parts.broker.state
        log, watcher = parts.instruments.log, parts.broker.watcher
        version = bridgehead.__version__
        self._flusher = LogFlusher(parts.instruments.flush)
        parts.instruments.call_when_buffered(self._flusher.flush_soon)
        log.append(Started(incarnation=state.incarnation, version=version, pid=os.getpid()))
        supported = config.bridgehead.envelope_supported
        log.append(ProtocolLevel(level=config.protocol_level, envelope_supported=supported))
        requirements = build_login_requirements(
            config, parts.security, parts.instruments.clock.wall_ms
        )
        await self._metrics_server.start(*_host_and_port(config.bridgehead.metrics_listener))
        self._envelopes = await parts.serve_envelopes(
            *_host_and_port(config.bridgehead.grpc_listener),
            parts.controller,
            parts.security.channel.server if parts.security.channel else None,
            parts.controller.api_ranges,
        )
        await watcher.open()
        await self._check_logs()  # before this node writes anything
        await self._create_paths()
        if parts.direct is not None:
            await parts.direct.open()
        state.cluster_id = await watcher.until_reply(watcher.cluster_id)
        configs = parts.broker.configs
        configs.store(
            {
                name: await watcher.until_reply(partial(watcher.read_config, "brokers", name))
                for name in configs.entities
            }
        )
        if parts.broker.data_plane is not None:
            await parts.broker.data_plane.open(state.cluster_id)
        server = self._server = build_server(parts)
        configs.limits_changed.subscribe(server.limits_changed)
        self._listeners = tuple(
            [
                await server.bind(listener, requirements[listener.name])
                for listener in config.listeners
            ]
        )
        await watcher.until_reply(partial(watcher.register, self._registration(), self._address()))
        await watcher.until_reply(watcher.watch)
        await server.serve()
        self._start_migration()
        self._register_gauges(server)
        self._schedule_snapshot()
        return server

    async def _check_logs(self) -> None:
        """Raise OSError if the logs belong to another cluster or broker."""
        watcher, data_plane = self._parts.broker.watcher, self._parts.broker.data_plane
        if data_plane is not None:
            data_plane.check_owner(await watcher.until_reply(watcher.find_cluster_id))

    async def _create_paths(self) -> None:
        """Create the persistent paths of the cluster, unless they exist."""
        parts, watcher = self._parts, self._parts.broker.watcher
        # Repeat until the new paths are visible: this broker's ZooKeeper server may lag behind.
        has_paths = partial(watcher.has_start_up_paths, parts.start_up_paths)
        while not await watcher.until_reply(has_paths):
            new_id = encode_uuid(uuid.uuid4().bytes)
            await watcher.until_reply(partial(parts.controller.prepare, new_id))

    def _start_migration(self) -> None:
        parts = self._parts
        if parts.migration is not None:
            plane = parts.broker.data_plane
            folders = plane.directories.paths if plane is not None else (parts.data_dir,)
            parts.migration.start(self._registration(), parts.broker.state.cluster_id, folders)

    def _registration(self) -> BrokerRegistration:
        config, endpoints = self._parts.config, []
        for listener in self._listeners:
            host, port = config.advertised.get(listener.name, ("", 0))
            address = host or listener.host, port or listener.port
            endpoints.append(Endpoint(listener.name, listener.security_protocol, *address))
        return BrokerRegistration(config.broker_id, -1, tuple(endpoints), config.rack)

    def _address(self) -> NodeAddress:
        assert self._envelopes is not None
        settings = self._parts.config.bridgehead
        host, _, port = settings.grpc_advertised.rpartition(":")
        host = host or _host_and_port(settings.grpc_listener)[0]
        bound = self._envelopes.port
        return NodeAddress(
            f"{host}:{int(port or 0) or bound}", self._parts.broker.state.incarnation
        )

    def _register_gauges(self, server: KafkaServer) -> None:
        metrics, broker, controller = (
            self._parts.instruments.metrics,
            self._parts.broker,
            self._parts.controller,
        )
        gauge, labelled = metrics.gauge, metrics.labelled
        gauge(names.ACTIVE_CONTROLLER, lambda: controller.state is ControllerState.ACTIVE)
        gauge(names.FORWARDING_QUEUE, lambda: broker.forwarding.queue_length)
        gauge(names.CONNECTIONS, lambda: server.connection_count)
        gauge(names.UNAUTHENTICATED_CONNECTIONS, lambda: server.unauthenticated_count)
        memory = server.services.memory
        gauge(names.MEMORY_USED, lambda: memory.used)
        gauge(names.MEMORY_AVAILABLE, lambda: max(memory.bytes_max - memory.used, 0))
        gauge(names.CLOSED_FOR_MEMORY, lambda: server.closed_for_memory_count)
        gauge(names.ZOOKEEPER_CONNECTED, lambda: broker.state.session is SessionState.CONNECTED)
        gauge(names.EVENT_QUEUE, lambda: controller.queue_length)
        gauge(names.BROKER_ACCEPT_RATE, broker.quotas.broker_accept_rate)
        labelled(names.LISTENER_ACCEPT_RATE, broker.quotas.accept_rates)
        labelled(names.ACCEPT_THROTTLE_TIME, broker.quotas.throttle_times_ms)
        labelled(names.IP_ACCEPT_THROTTLE_TIME, broker.quotas.address_throttle_times_ms)
        metrics.connected_software(server.connected_software)

    async def stop(self, reason: str) -> None:
        """Finish the requests in progress, resign, end the ZooKeeper sessions, close everything."""
        parts, log = self._parts, self._parts.instruments.log
        if self._flusher is not None:
            self._flusher.stop()
        if self._snapshot_timer is not None:
            self._snapshot_timer.cancel()
        # Otherwise, if all nodes are stopped together, the last one would briefly become active.
        parts.follower.withdraw()
        await self._leave()
        if self._server is not None:
            await self._server.stop(_STOP_GRACE_S)
        if parts.broker.data_plane is not None:
            await parts.broker.data_plane.close()
        if parts.direct is not None:
            await parts.direct.close()
        await parts.follower.stop()
        if parts.migration is not None:
            await parts.migration.stop()
        parts.broker.consistency.stop()
        await parts.controller.resign(reason)
        await parts.broker.watcher.close()
        if self._envelopes is not None:
            await self._envelopes.stop()
        await self._metrics_server.stop()
        for policies in filter(None, (parts.policies, parts.record_policies)):
            await policies.close()
        log.append(MetricsSnapshot(values=parts.instruments.metrics.snapshot()))
        log.append(Stopped(reason=reason))
        parts.instruments.close()

    async def _leave(self) -> None:
        """Hand the leaderships over if there is a KRaft controller for it."""
        parts = self._parts
        if parts.migration is not None and parts.follower.forwards_to_kraft:
            if parts.broker.data_plane is not None:
                await parts.broker.data_plane.stop_following()
            await parts.migration.leave()

    def _schedule_snapshot(self) -> None:
        instruments = self._parts.instruments
        instruments.log.append(MetricsSnapshot(values=instruments.metrics.snapshot()))
        loop = asyncio.get_running_loop()
        self._snapshot_timer = loop.call_later(_SNAPSHOT_EVERY_S, self._schedule_snapshot)

    # --- Status --------------------------------------------------------------------------

    def ready(self) -> dict[str, Any]:
        """Return the addresses of a node that has started, for `ready.json`."""
        config = self._parts.config
        metrics_host, _ = _host_and_port(config.bridgehead.metrics_listener)
        return {
            "id": config.broker_id,
            "pid": os.getpid(),
            "incarnation": self._parts.broker.state.incarnation,
            "listeners": {
                listener.name: f"{listener.host}:{listener.port}" for listener in self._listeners
            },
            "metrics_url": f"http://{metrics_host}:{self._metrics_server.port}/metrics",
            "grpc": self._address().grpc,
        }

    def status(self) -> dict[str, Any]:
        """Return this node's status. Its keys are part of the user interface."""
        config, broker, controller = self._parts.config, self._parts.broker, self._parts.controller
        cache, skipped = broker.cache, controller.skipped_znodes
        is_active, responds = controller.state is ControllerState.ACTIVE, self._zookeeper_responds()
        return {
            "id": config.broker_id,
            "cluster_id": broker.state.cluster_id,
            "is_controller": is_active and responds,
            "controller_state": "suspended"
            if is_active and not responds
            else controller.state.value,
            "controller_id": self._controller_id(),
            "controller_epoch": controller.epoch or cache.controller_epoch,
            "brokers": sorted(cache.brokers),
            "topics": len(cache.topics),
            "zxid": cache.zxid,
            "session": broker.state.session.value,
            "zookeeper_answers": responds,
            "protocol_level": config.protocol_level,
            "envelope_supported": config.bridgehead.envelope_supported,
            "writes_directly": self._parts.direct is not None,
            "skipped_znodes": {"count": len(skipped), "first": skipped[:_SKIPPED_SHOWN]},
            "election_problem": self._parts.follower.election_problem,
            "migration": self._migration_status(),
        }

    def _migration_status(self) -> dict[str, Any] | None:
        migration = self._parts.migration
        if migration is None:
            return None
        return migration.status(controller_is_kraft=self._parts.broker.cache.controller_is_kraft)

    def _controller_id(self) -> int | None:
        """Return the active controller according to both ZooKeeper and the metadata cache.

        Return None if they disagree, if ZooKeeper is silent, or if the cache has no such broker. A
        KRaft controller is no broker.
        """
        cache = self._parts.broker.cache
        controller_id = cache.controller_id if self._zookeeper_responds() else None
        agreed = controller_id == self._parts.follower.controller_id and (
            controller_id in cache.brokers or cache.controller_is_kraft
        )
        return controller_id if agreed else None

    def _zookeeper_responds(self) -> bool:
        """Return whether ZooKeeper has answered within the session timeout.

        If it has not, the session of the controller that this node knows may have expired.
        """
        watcher = self._parts.broker.watcher
        silent_s = time.monotonic() - watcher.last_contact_s
        return silent_s * 1000 <= watcher.session_timeout_ms

    def _health(self) -> tuple[bool, str]:
        if not self._zookeeper_responds():
            return False, "no answer from ZooKeeper for longer than the session timeout"
        controller_id = self._controller_id()
        if controller_id is None:
            return False, "no active controller is known"
        return True, f"broker {controller_id} is controller"


def _host_and_port(listener: str) -> tuple[str, int]:
    host, _, port = listener.rpartition(":")
    return host, int(port)
