"""The steps of a rehearsal. Each waits for what Kafka's log says, for a bounded time.

    start_cluster → start_controllers → until_dual_write → to_kraft_brokers → finalize

`run` and `rollback` call them.
"""

from __future__ import annotations

import asyncio
import functools
import os
import signal
import time
from collections.abc import Awaitable, Callable, Sequence
from typing import Final, NamedTuple

from bridgehead.cluster.errors import ClusterError
from bridgehead.cluster.node_process import NodeProcess
from bridgehead.cluster.zookeeper import EmbeddedZooKeeper
from cluster_model.znodes.operations import Create
from rehearse.copying import CONTROLLER, MIGRATION, delete_if_present, read_object, write_znodes
from rehearse.faults import Fault, FaultResult
from rehearse.findings import Outcome
from rehearse.kraft.process import KafkaProcess
from rehearse.links import Link
from rehearse.metadata_log import Metadata, MetadataLog, MetadataLogError
from rehearse.metadata_records import MigrationState
from rehearse.participants import Participants
from rehearse.phases import DriverState, Progress
from rehearse.sources.ensemble import read_ensemble
from rehearse.znodes import ZnodeTree

_POLL_S: Final = 0.1
_LOG_POLL_S: Final = 0.5  # with 1,000 topics, reading KRaft's log takes a second
_FAST_POLL_S: Final = 0.02  # the driver passes states within milliseconds
_STILL_WAITING_S: Final = 10.0
_MEASURE_S: Final = 1.0
# How long a step may take with the default patience.
_READY_S: Final = 60.0
_JVM_S: Final = 120.0
_LEAVE_S: Final = 60.0
_ELECTION_S: Final = 30.0
_IN_SYNC_S: Final = 60.0
# The migration reads and syncs with two round trips per topic: 5 ms per topic on a busy laptop.
_S_PER_TOPIC: Final = 0.02
PATIENCE_S: Final = 60.0
_GONE_S: Final = 3.0  # how long a killed or frozen participant is away
Say = Callable[[str], None]


class BlockedError(ClusterError):
    """The controller does not go on. The text says why, in Kafka's words."""

    def __init__(self, outcome: Outcome, why: str) -> None:
        super().__init__(f"The migration {outcome.value}: {why}")
        self.outcome = outcome
        self.why = why


class _Target(NamedTuple):
    """What a fault does to one participant."""

    kill: Callable[[], None]
    freeze: Callable[[], None]
    thaw: Callable[[], None]
    start_again: Callable[[], Awaitable[None]]


class Rehearsal:
    """The participants, and how far their migration is."""

    def __init__(
        self, participants: Participants, say: Say, *, patience_s: float = PATIENCE_S
    ) -> None:
        """`patience_s`: a controller that waits longer for the same waits for ever.

        More than the default lets every other step take longer, too, on a busy machine.
        """
        self.participants = participants
        self.progress = {number: Progress() for number in participants.controllers}
        self.patience_s = patience_s
        self.topics = 0
        """How many topics there are, which makes steps longer."""
        self._say = say
        self._measured_s = 0.0

    @property
    def active(self) -> Progress:
        """The progress of the controller that is furthest."""
        return self.progress[max(self.progress, key=self._rank)]

    def _rank(self, number: int) -> int:
        state = self.progress[number].state
        return -1 if state is None else list(DriverState).index(state)

    @property
    def topics_limit_s(self) -> float:
        """How long a step may take that reads every topic."""
        return self.patience_s + self._more_s

    @property
    def _more_s(self) -> float:
        return _S_PER_TOPIC * self.topics

    def _within_s(self, usual_s: float) -> float:
        """Return how long a step may take that takes at most `usual_s` with few topics."""
        return (usual_s + self._more_s) * max(1.0, self.patience_s / PATIENCE_S)

    def metadata(self, until: MigrationState | None = None) -> Metadata:
        """Return what KRaft has; with `until`, what it had when it entered this state.

        Raises:
            ClusterError: the log cannot be read.
        """
        controllers = self.participants.controllers
        # Of a quorum, the leader has the newest records.
        number = max(controllers, key=lambda n: (controllers[n].is_running(), self._rank(n)))
        controller = controllers[number]
        try:
            return MetadataLog(controller.log_dir).read(until=until)
        except MetadataLogError as error:
            raise ClusterError(str(error)) from error

    async def tree(self) -> ZnodeTree:
        """Return the znodes of the rehearsal's ZooKeeper."""
        return await read_ensemble(self.participants.connect, acls=False)

    async def wait(
        self,
        what: str,
        condition: Callable[[], Awaitable[object]],
        within_s: float,
        why: Callable[[], str] = lambda: "",
        *,
        poll_s: float = _POLL_S,
    ) -> None:
        """Return once `condition` is true; say every ten seconds what is waited for.

        Raises:
            ClusterError: `within_s` passed, or a process ended.
        """
        began_s = said_s = time.monotonic()
        while True:
            self.pump()
            if await condition():
                return
            self._check_processes()
            now_s = time.monotonic()
            reason = why()
            if now_s - began_s > within_s:
                raise ClusterError(
                    f"{what} did not happen within {within_s:.0f} s{reason and f': {reason}'}."
                )
            if now_s - said_s > _STILL_WAITING_S:
                said_s = now_s
                self._say(
                    f"still waiting for {what} ({now_s - began_s:.0f} of at most {within_s:.0f} s)"
                    f"{reason and f': {reason}'}"
                )
            await asyncio.sleep(poll_s)

    def pump(self) -> None:
        """Read what the controllers logged; say what is new."""
        several = len(self.progress) > 1
        for number, progress in self.progress.items():
            for sentence in progress.feed(self.participants.controllers[number].log_lines()):
                self._say(f"[{number}] {sentence}" if several else sentence)
        if time.monotonic() - self._measured_s > _MEASURE_S:
            self._measured_s = time.monotonic()
            self.participants.measure()

    def _check_processes(self) -> None:
        for node in self.participants.nodes.values():
            if node.condition == "running" and (status := node.exit_status()) is not None:
                raise ClusterError(f"Our broker {node.id} ended: {node.exit_reason(status)}")
        for broker in self.participants.brokers.values():
            if broker.has_ended():
                raise ClusterError(f"Kafka's broker {broker.id} ended: {broker.last_output()}")
        dead = [c for c in self.participants.controllers.values() if c.has_ended()]
        if len(dead) > (len(self.participants.controllers) - 1) // 2:
            self.pump()
            fatal = next((p.fatal for p in self.progress.values() if p.fatal), "")
            raise BlockedError(Outcome.DIES, fatal or dead[0].last_output() or "see its log")

    async def start_cluster(
        self, *, hold_controller: bool = False, awaits_controller: bool = True
    ) -> None:
        """Start our nodes; return when all serve and one of them is controller.

        `hold_controller`: /controller is taken, so that no controller changes the copy before
        Kafka reads it. `awaits_controller`: False if KRaft has /controller already.
        """
        connect = self.participants.connect
        if hold_controller:
            await write_znodes(connect, Create(CONTROLLER, _held_by(self.participants)))
        for node in self.participants.nodes.values():
            node.start()
        self._say(f"our nodes start as brokers {_ids(self.participants.nodes)}")
        within_s = self._within_s(_READY_S)
        await self.wait("the start of our nodes", self._nodes_serve, within_s)
        if awaits_controller and not hold_controller:
            await self.wait(
                "a ZooKeeper controller", self.zookeeper_controller, self._within_s(_ELECTION_S)
            )

    async def _nodes_serve(self) -> bool:
        return all(node.is_ready() for node in self.participants.nodes.values())

    async def zookeeper_controller(self) -> int | None:
        """Return the broker that is controller; None if there is none, or KRaft has one."""
        controller = await read_object(self.participants.connect, CONTROLLER)
        if controller is None:
            return None
        broker_id = int(controller.get("brokerid", -1))
        return broker_id if broker_id in self.participants.nodes else None

    def start_controllers(self, *, migrating: bool = True) -> None:
        """Start every controller that does not run."""
        for number, controller in self.participants.controllers.items():
            if not controller.is_running():
                self.progress[number].restarted()
                self.participants.start_controller(number, migrating=migrating)
        self._say(
            f"Kafka {self.participants.plan.kafka} starts as controller "
            f"{_ids(self.participants.controllers)}"
        )

    async def until_dual_write(self, at: Callable[[str], Awaitable[None]] | None = None) -> None:
        """Return when the controller is in DUAL_WRITE; `at` gets each state that it enters.

        Raises:
            BlockedError: it dies, or waits for the same longer than `patience_s`.
        """
        changed_s, last = time.monotonic(), ""
        seen: set[DriverState] = set()
        while self.active.state is not DriverState.DUAL_WRITE:
            self.pump()
            self._check_processes()
            progress = self.active
            for state in progress.states:
                # If a fault has ended the controller, it enters the later states again.
                if state not in seen and progress.state is not None:
                    seen.add(state)
                    if at is not None:
                        await at(state)
            here = f"{progress.state} {progress.waiting_for}"
            if here != last:
                changed_s, last = time.monotonic(), here
            self._check_blocked(progress, time.monotonic() - changed_s)
            await asyncio.sleep(_FAST_POLL_S)

    def _check_blocked(self, progress: Progress, seconds: float) -> None:
        if progress.state is None and not progress.waiting_for:
            limit_s = self._within_s(_JVM_S)  # its JVM starts
        else:
            limit_s = self.patience_s if progress.waiting_for else self.topics_limit_s
        if seconds > limit_s:
            owns = progress.claimed_s is not None
            raise BlockedError(
                Outcome.STUCK if owns else Outcome.WAITS,
                progress.waiting_for or f"in {progress.state} it logs no reason",
            )

    async def inject(self, fault: Fault) -> FaultResult:
        """Kill, freeze or cut off a participant, note what that leaves, and bring it back."""
        self._say(f"fault: {fault}")
        begin, end = self._effect(fault)
        begin()
        self.pump()
        hit = _name(self.active.state)
        await asyncio.sleep(_GONE_S)
        self.pump()
        left = await self._left(fault)
        self._say(f"it hit {hit}, and left: {left}")
        await end()
        return FaultResult(str(fault), hit, left, time.time())

    def _effect(self, fault: Fault) -> tuple[Callable[[], None], Callable[[], Awaitable[None]]]:
        """Return what begins a fault, and what ends it."""
        if fault.action == "cut":
            active = next(n for n in self.progress if self.progress[n] is self.active)
            links = self.participants.links(fault.participant, active)
            return _each(links, Link.cut), _later(_each(links, Link.mend))
        target = self._target(fault.participant)
        if fault.action == "freeze":
            return target.freeze, _later(target.thaw)
        return target.kill, target.start_again

    def _target(self, participant: str) -> _Target:
        participants = self.participants
        if participant == "zookeeper":
            zookeeper = participants.zookeeper

            async def serve() -> None:
                zookeeper.start_member(1)
                await asyncio.to_thread(zookeeper.wait_until_serving)

            return _Target(
                zookeeper.kill,
                functools.partial(_signal, zookeeper, signal.SIGSTOP),
                functools.partial(_signal, zookeeper, signal.SIGCONT),
                serve,
            )
        if participant == "controller":
            number = max(
                self.progress,
                key=lambda n: (
                    self.progress[n] is self.active,
                    participants.controllers[n].pid or 0,
                ),
            )
            controller = participants.controllers[number]

            async def start_controller() -> None:
                self.progress[number].restarted()
                participants.start_controller(number)

            return _Target(controller.kill, controller.freeze, controller.thaw, start_controller)
        return self._broker_target()

    def _broker_target(self) -> _Target:
        """Return the first broker: our node, or Kafka's if that has taken over."""
        broker_id, node = next(iter(self.participants.nodes.items()))
        kafka = self.participants.brokers[broker_id]
        if kafka.is_running():

            async def start_kafka() -> None:
                self.participants.start_broker(broker_id)
                await self.wait(
                    f"the start of Kafka's broker {broker_id}",
                    functools.partial(_serves, kafka),
                    self._within_s(_JVM_S),
                )

            return _Target(kafka.kill, kafka.freeze, kafka.thaw, start_kafka)

        async def start_node() -> None:
            node.start()
            await self.wait(
                f"the start of our broker {broker_id}",
                functools.partial(_is_ready, node),
                self._within_s(_READY_S),
            )

        return _Target(node.kill, node.freeze, node.thaw, start_node)

    async def _left(self, fault: Fault) -> str:
        """Return where the driver is, who owns /controller, and whether /migration is there."""
        state = _name(self.active.state)
        if fault.participant == "zookeeper":
            return state
        connect = self.participants.connect
        controller = await read_object(connect, CONTROLLER)
        owner = "nobody" if controller is None else controller.get("brokerid")
        migration = await read_object(connect, MIGRATION) or {}
        offset = migration.get("kraft_metadata_offset", -1)
        kept = "has" if offset > 0 else "has not"
        return f"{state}, /controller of {owner}, and KRaft {kept} the metadata"

    async def to_kraft_brokers(self, in_sync: Sequence[str] = ()) -> None:
        """Replace our nodes by Kafka's brokers in KRaft mode, one by one.

        `in_sync` are topics of which every replica must be in sync before the next node leaves: a
        broker of Kafka begins with an empty disk.
        """
        await self._until_in_sync(in_sync)
        for broker_id, node in self.participants.nodes.items():
            await self._leave(node)
            broker = self.participants.brokers[broker_id]
            self.participants.start_broker(broker_id)
            await self.wait(
                f"the start of Kafka's broker {broker_id}",
                functools.partial(_serves, broker),
                self._within_s(_JVM_S),
            )
            self._say(f"broker {broker_id} is now a real Kafka broker in KRaft mode")
            await self._until_in_sync(in_sync)

    async def _until_in_sync(self, topics: Sequence[str]) -> None:
        """Return when KRaft's log has all replicas of the topics in the ISRs."""
        if not topics:
            return
        missing: dict[str, list[int]] = {}

        async def is_none_missing() -> bool:
            nonlocal missing
            missing = (await asyncio.to_thread(self.metadata)).out_of_sync(topics)
            return not missing

        def why() -> str:
            brokers = sorted({broker for ids in missing.values() for broker in ids})
            return f"{len(missing)} lack broker {_ids(brokers)}"

        began_s, within_s = time.monotonic(), self._within_s(_IN_SYNC_S)
        what = "a full ISR of every partition"
        await self.wait(what, is_none_missing, within_s, why, poll_s=_LOG_POLL_S)
        self._say(f"all replicas are in sync, after {time.monotonic() - began_s:.1f} s")

    async def start_kraft_brokers(self) -> None:
        """Start Kafka's brokers at once, which have all left before."""
        for broker_id in self.participants.brokers:
            self.participants.start_broker(broker_id)
        for broker_id, broker in self.participants.brokers.items():
            await self.wait(
                f"the start of Kafka's broker {broker_id}",
                functools.partial(_serves, broker),
                self._within_s(_JVM_S),
            )

    async def back_to_nodes(self) -> None:
        """Replace Kafka's brokers by our nodes in migration mode, one by one."""
        for broker_id, broker in self.participants.brokers.items():
            if broker.is_running():
                broker.stop()
            node = self.participants.nodes[broker_id]
            if not node.is_running():
                node.start()
                await self.wait(
                    f"the start of our broker {broker_id}",
                    functools.partial(_is_ready, node),
                    self._within_s(_READY_S),
                )
                self._say(f"broker {broker_id} is in ZooKeeper mode again")

    async def _leave(self, node: NodeProcess) -> None:
        """Shut down one of our nodes as Kafka does: its leaders move first."""
        node.request_stop()
        began_s, within_s = time.monotonic(), self._within_s(_LEAVE_S)
        while node.is_running():
            self.pump()
            if time.monotonic() - began_s > within_s:
                raise ClusterError(f"Our broker {node.id} did not leave within {within_s:.0f} s.")
            await asyncio.sleep(_POLL_S)
        node.stop()
        self._say(f"our broker {node.id} has left, after {time.monotonic() - began_s:.1f} s")

    async def finalize(self) -> None:
        """Start the controllers again without ZooKeeper and without the migration."""
        for controller in self.participants.controllers.values():
            controller.stop()
        self.start_controllers(migrating=False)
        await self.wait("the end of the migration", self._is_finalized, self._within_s(_JVM_S))

    async def _is_finalized(self) -> bool:
        return self.metadata().state is MigrationState.POST_MIGRATION

    async def elect_in_zookeeper(self, *, without_znode: bool = True) -> list[str]:
        """Delete what KRaft left, so that a broker becomes controller; return what was deleted."""
        deleted = []
        if without_znode:
            deleted = await delete_if_present(self.participants.connect, CONTROLLER)
        await self.wait(
            "a ZooKeeper controller", self.zookeeper_controller, self._within_s(_ELECTION_S)
        )
        return deleted


async def _serves(broker: KafkaProcess) -> bool:
    return any("Kafka Server started" in line.message for line in broker.log_lines())


async def _is_ready(node: NodeProcess) -> bool:
    return node.is_ready()


def _each(links: Sequence[Link], act: Callable[[Link], None]) -> Callable[[], None]:
    def act_on_all() -> None:
        for link in links:
            act(link)

    return act_on_all


def _later(act: Callable[[], None]) -> Callable[[], Awaitable[None]]:
    async def act_later() -> None:
        act()

    return act_later


def _signal(zookeeper: EmbeddedZooKeeper, number: signal.Signals) -> None:
    pid = zookeeper.pid()
    if pid is not None:
        os.kill(pid, number)


def _held_by(participants: Participants) -> bytes:
    holder = next(iter(participants.nodes))
    return b'{"version":2,"brokerid":%d,"timestamp":"0","kraftControllerEpoch":-1}' % holder


def _name(state: DriverState | None) -> str:
    return state or "no state"


def _ids(processes: object) -> str:
    return ", ".join(map(str, processes))  # type: ignore[call-overload]
