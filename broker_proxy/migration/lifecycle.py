"""Registers a migrating broker with the KRaft controller, and keeps the registration alive.

A broker registers with its cluster id, its listeners, its log directories and its level. The
controller answers with the broker epoch. Heartbeats then report how far the broker has followed the
metadata log; a broker that reports its own registration is no longer fenced. A broker stops when
the controller permits it in the response to a heartbeat (KIP-631 §The Broker Lifecycle; KIP-866).
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final, NamedTuple

from bridgehead.admin.requests import error_code
from bridgehead.kafka_wire.api_key import ApiKey
from bridgehead.kafka_wire.errors import ErrorCode
from bridgehead.kafka_wire.messages.broker_heartbeat import (
    BrokerHeartbeatRequest,
    BrokerHeartbeatResponse,
)
from bridgehead.kafka_wire.messages.broker_registration import (
    BrokerRegistrationRequest,
    BrokerRegistrationResponse,
    Feature,
    Listener,
)
from bridgehead.kafka_wire.messages.describe_quorum import (
    DescribeQuorumRequest,
    DescribeQuorumResponse,
    QuorumPartition,
    QuorumTopic,
)
from broker_proxy.migration.quorum import NoActiveControllerError, Quorum, QuorumConnection

_log = logging.getLogger(__name__)
UNREGISTERED: Final = -1
_METADATA_TOPIC: Final = "__cluster_metadata"
_METADATA_VERSION: Final = "metadata.version"
_FIRST_PAUSE_S: Final = 0.01
_SHUTDOWN_PAUSE_S: Final = 0.1
_REGISTERS_AGAIN: Final = frozenset(
    {ErrorCode.STALE_BROKER_EPOCH, ErrorCode.BROKER_ID_NOT_REGISTERED}
)
# What to do after an error of BrokerRegistration or BrokerHeartbeat.
_REMEDIES: Final[Mapping[ErrorCode, str]] = {
    ErrorCode.UNSUPPORTED_VERSION: "it has inter.broker.protocol.version={level}; set it to the "
    "metadata.version of the controller",
    ErrorCode.INCONSISTENT_CLUSTER_ID: "format the controller's storage with the cluster id of "
    "ZooKeeper, {cluster_id}",
    ErrorCode.INVALID_REGISTRATION: "let inter.broker.listener.name of the controller name a "
    "listener of this broker ({listeners}), and give no two brokers the same log directory ids",
    ErrorCode.DUPLICATE_BROKER_REGISTRATION: "stop the other process that is registered as this "
    "broker, or wait until its session ends (broker.session.timeout.ms)",
    ErrorCode.BROKER_ID_NOT_REGISTERED: "start the controller with "
    "zookeeper.metadata.migration.enable=true; after the end of the migration no broker of "
    "ZooKeeper can join",
    ErrorCode.CLUSTER_AUTHORIZATION_FAILED: "add this broker's principal to super.users of the "
    "controller, which has no ACLs before the migration",
}


class Intervals(NamedTuple):
    """broker.heartbeat.interval.ms and broker.session.timeout.ms, in seconds."""

    heartbeat_s: float
    session_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Identity:
    """What this broker tells the controller about itself."""

    broker_id: int
    cluster_id: str
    incarnation_id: bytes  # 16 bytes, different in each process
    listeners: tuple[Listener, ...]  # all of them, as clients see them
    rack: str | None
    log_dirs: tuple[bytes, ...]  # the id of each log directory
    level: str  # inter.broker.protocol.version
    feature_level: int  # the same as a number

    def registration(self) -> BrokerRegistrationRequest:
        """Return the request. As in Kafka, lowest and highest level are this broker's own."""
        level = self.feature_level
        return BrokerRegistrationRequest(
            broker_id=self.broker_id,
            cluster_id=self.cluster_id,
            incarnation_id=self.incarnation_id,
            listeners=list(self.listeners),
            features=[Feature(_METADATA_VERSION, level, level)],
            rack=self.rack,
            is_migrating_zk_broker=True,
            log_dirs=list(self.log_dirs),
        )

    def problem(self, error: int) -> str:
        """Return a sentence about an error of the controller: what happened, and what to do."""
        code = error_code(error)
        remedy = _REMEDIES.get(code, "see the log of the controller")
        names = ", ".join(listener.name for listener in self.listeners)
        advice = remedy.format(level=self.level, cluster_id=self.cluster_id, listeners=names)
        return f"the KRaft controller rejects this broker with {code.name}: {advice}"


class BrokerLifecycle:
    """The registration of one broker. Used from the event loop only."""

    def __init__(
        self,
        quorum: Quorum,
        connection: QuorumConnection,
        intervals: Intervals,
        registered: Callable[[int], None] = lambda _epoch: None,
    ) -> None:
        """`registered` gets each new broker epoch."""
        self.epoch = UNREGISTERED
        self.is_fenced = True
        self.problem: str | None = None
        self._quorum = quorum
        self._connection = connection
        self._intervals = intervals
        self._registered = registered
        self._identity: Identity | None = None
        self._is_caught_up = False
        self._wants_shutdown = False
        self._may_stop = asyncio.Event()
        self._woken = asyncio.Event()
        self._pause_s = _FIRST_PAUSE_S
        self._task: asyncio.Task[None] | None = None

    def start(self, identity: Identity) -> None:
        """Begin to register."""
        self._identity = identity
        self._task = asyncio.create_task(self._run(identity), name="lifecycle at the controller")

    async def leave(self, timeout_s: float) -> bool:
        """Ask the controller for other leaders; return whether it permitted the stop in time.

        If the controller does not answer as it should, there is nothing to wait for.
        """
        is_registered = self.epoch != UNREGISTERED and self.problem is None
        if self._task is None or self._task.done() or not is_registered:
            return False
        self._wants_shutdown = True
        self._woken.set()
        try:
            async with asyncio.timeout(timeout_s):
                await self._may_stop.wait()
        except TimeoutError:
            _log.warning("the controller has not permitted the stop in %.0f s", timeout_s)
            return False
        return self.problem is None

    async def stop(self) -> None:
        """Send nothing more. The controller fences this broker when its session ends."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
        self._connection.close()

    async def _run(self, identity: Identity) -> None:
        while not self._may_stop.is_set():
            try:
                pause_s = await self.step(identity)
            except NoActiveControllerError as error:
                voters = ",".join(map(str, self._quorum.voters))
                pause_s = self._failed(
                    f"no active KRaft controller among {voters}: {error} Start it, or correct "
                    "controller.quorum.voters"
                )
            except Exception:
                _log.exception("the registration failed unexpectedly; it is tried again")
                pause_s = self._intervals.heartbeat_s
            await self._rest(pause_s)

    async def _rest(self, pause_s: float) -> None:
        try:
            async with asyncio.timeout(pause_s):
                await self._woken.wait()
        except TimeoutError:
            pass
        self._woken.clear()

    async def step(self, identity: Identity) -> float:
        """Register, or send a heartbeat; return the pause before the next step, in seconds.

        Raises:
            NoActiveControllerError: this step had no effect that is known.
        """
        if self.epoch == UNREGISTERED:
            return await self._register(identity)
        return await self._beat(identity, await self._metadata_offset())

    async def _register(self, identity: Identity) -> float:
        response: BrokerRegistrationResponse = await self._connection.request(
            ApiKey.BROKER_REGISTRATION,
            identity.registration(),
            self._intervals.session_s / 2,
            is_not_controller,
        )
        if response.error_code:
            return self._failed(identity.problem(response.error_code))
        self._connection.confirm()
        self.epoch, self.is_fenced, self._is_caught_up = response.broker_epoch, True, False
        _log.info("registered with the KRaft controller: broker epoch %d", self.epoch)
        self._succeeded()
        self._registered(self.epoch)
        return 0.0

    async def _metadata_offset(self) -> int:
        """Return the offset of the last committed record of the metadata log.

        Without the right to read it (DESCRIBE on Cluster), return this broker's registration. Then
        other brokers wait for this one when they stop.
        """
        topic = QuorumTopic(_METADATA_TOPIC, [QuorumPartition(0)])
        response: DescribeQuorumResponse = await self._connection.request(
            ApiKey.DESCRIBE_QUORUM,
            DescribeQuorumRequest([topic]),
            self._intervals.session_s / 4,
            _is_not_leader,
        )
        if response.error_code or not response.topics:
            return self.epoch
        return max(response.topics[0].partitions[0].high_watermark - 1, self.epoch)

    async def _beat(self, identity: Identity, offset: int) -> float:
        request = BrokerHeartbeatRequest(
            broker_id=identity.broker_id,
            broker_epoch=self.epoch,
            current_metadata_offset=offset,
            want_fence=not self._is_caught_up and not self._wants_shutdown,
            want_shut_down=self._wants_shutdown,
        )
        response: BrokerHeartbeatResponse = await self._connection.request(
            ApiKey.BROKER_HEARTBEAT, request, self._intervals.session_s / 2, is_not_controller
        )
        if response.error_code in _REGISTERS_AGAIN:
            name = ErrorCode(response.error_code).name
            _log.info("%s for broker epoch %d: registering again", name, self.epoch)
            self.epoch, self.is_fenced = UNREGISTERED, True
            return self._next_pause_s()
        if response.error_code:
            return self._failed(identity.problem(response.error_code))
        self._connection.confirm()
        return self._beaten(response)

    def _beaten(self, response: BrokerHeartbeatResponse) -> float:
        """Apply the response to a heartbeat; return the pause before the next heartbeat."""
        was_caught_up = self._is_caught_up
        self.is_fenced, self._is_caught_up = response.is_fenced, response.is_caught_up
        if self._wants_shutdown:
            if response.should_shut_down:
                self._may_stop.set()
            return _SHUTDOWN_PAUSE_S
        if self._is_caught_up and not was_caught_up:
            return 0.0  # The next heartbeat asks to be unfenced.
        if self.is_fenced:
            return self._next_pause_s()
        self._succeeded()
        return self._intervals.heartbeat_s

    def _next_pause_s(self) -> float:
        """Return a pause that doubles, up to the interval of heartbeats."""
        pause_s = self._pause_s
        self._pause_s = min(2 * pause_s, self._intervals.heartbeat_s)
        return min(pause_s, self._intervals.heartbeat_s)

    def _failed(self, problem: str) -> float:
        if problem != self.problem:
            _log.warning("%s", problem)
        self.problem = problem
        if self._wants_shutdown:
            self._may_stop.set()
        return self._next_pause_s()

    def _succeeded(self) -> None:
        self.problem, self._pause_s = None, _FIRST_PAUSE_S


def is_not_controller(response: object) -> bool:
    """Return whether a response says that its sender is not the active controller."""
    return getattr(response, "error_code", 0) == ErrorCode.NOT_CONTROLLER


def _is_not_leader(response: DescribeQuorumResponse) -> bool:
    """Return whether the voter that answered is not the leader of the metadata log."""
    if response.error_code in (ErrorCode.NOT_CONTROLLER, ErrorCode.NOT_LEADER_OR_FOLLOWER):
        return True
    partitions = response.topics[0].partitions if response.topics else []
    return any(partition.error_code for partition in partitions)
