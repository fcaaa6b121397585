"""The nodes of a running cluster, its evidence, and the contents of cluster.json."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from typing import Any

from bridgehead.cluster.data_directory import DataDirectory, write_json
from bridgehead.cluster.errors import ClusterError
from bridgehead.cluster.node_process import NodeProcess
from bridgehead.cluster.run_record import RunRecord
from bridgehead.cluster.settings import ClusterSettings
from bridgehead.cluster.zookeeper import EmbeddedZooKeeper
from bridgehead.cluster.zookeeper_credentials import embedded_chroot
from bridgehead.schema_version import SCHEMA_VERSION

Announce = Callable[[str], None]
_POLL_S = 0.02


async def wait_until(
    condition: Callable[[], Awaitable[object]], timeout_s: float, late: Callable[[], Awaitable[str]]
) -> None:
    """Return once `condition` returns a true value.

    Raises:
        ClusterError: `timeout_s` passed first; `late` returns the message.
    """
    deadline = asyncio.get_running_loop().time() + timeout_s
    while not await condition():
        if asyncio.get_running_loop().time() > deadline:
            raise ClusterError(await late())
        await asyncio.sleep(_POLL_S)


class RunningCluster:
    """The processes of one cluster, from the first start on."""

    def __init__(self, settings: ClusterSettings, announce: Announce) -> None:
        """`announce` prints a sentence for the user."""
        self.settings = settings
        self.announce = announce
        self.directory = DataDirectory(settings.data_dir)
        self.nodes: dict[int, NodeProcess] = {}
        self.zookeeper: EmbeddedZooKeeper | None = None
        self.record = RunRecord(self.directory.root, settings, announce)
        self.pinned = settings.controller
        """The broker that is controller whenever it runs; None: any broker."""
        self.phase = "starting"
        """starting, waiting (for addresses), ready, sealed or stopping."""
        self.document: dict[str, Any] = {}
        """The contents of cluster.json; empty until the cluster is ready."""
        self.salts: Mapping[str, Mapping[str, str]] = {}
        """The salts of the planned SCRAM users, by user name and mechanism."""
        self.was_upgraded = False
        self.control_url: str | None = None
        """The URL of the control API; None if it is not served."""
        self.late_addresses: Sequence[str] = ()
        """What `advertise` sent: the addresses of the brokers, in the order of their ids."""
        self.has_addresses = asyncio.Event()
        self.has_started = asyncio.Event()
        self._stopping = asyncio.Lock()
        self._is_stopped = False
        self._thaws: dict[asyncio.Task[None], NodeProcess] = {}

    @property
    def zookeeper_connect(self) -> str:
        """`zookeeper.connect` of the nodes."""
        if self.settings.zookeeper_connect is not None:
            return self.settings.zookeeper_connect
        embedded = self.zookeeper
        return embedded.connect + embedded_chroot(self.settings) if embedded is not None else ""

    def zookeeper_problem(self, states: Iterable[dict[str, Any] | None]) -> str | None:
        """Return the reason why ZooKeeper does not work; None if it works.

        `states` are the statuses of the nodes, which say whether ZooKeeper answers them.
        """
        exits = self.zookeeper.exits() if self.zookeeper is not None else {}
        if exits:
            return f"{' '.join(exits.values())} `bridgehead zookeeper start` starts it again."
        responses = [state.get("zookeeper_answers", True) for state in states if state is not None]
        if responses and not any(responses):
            return "ZooKeeper has answered no broker for longer than the session timeout."
        return None

    async def node_states(self) -> dict[int, dict[str, Any] | None]:
        """Return every node's status, queried in parallel; None for a node that does not answer."""
        states = await asyncio.gather(*(node.state() for node in self.nodes.values()))
        return dict(zip(self.nodes, states, strict=True))

    async def active_controller(self) -> dict[str, Any] | None:
        """Return the active controller's status if every node that answers names it; else None.

        A KRaft controller is no node: then the status has only `id`, `controller_epoch` and
        `is_kraft`.
        """
        states = await self.node_states()
        named = {state.get("controller_id") for state in states.values() if state is not None}
        controller_id = named.pop() if len(named) == 1 else None
        if controller_id is None:
            return None
        state = states.get(int(controller_id))
        if state is None:
            return _kraft_controller(controller_id, [state for state in states.values() if state])
        return state if state is not None and state.get("is_controller") else None

    async def is_complete(self) -> bool:
        """Return whether a controller is active and every node knows every other.

        If there is a pinned controller, it must be the active one.

        An active controller does not always know every node: a broker that registers while the
        controller loads its state becomes known a moment later, and gets no replicas until then.
        """
        controller = await self.active_controller()
        if controller is None or self.pinned not in (None, controller["id"]):
            return False
        expected = set(self.nodes)
        return all(
            state is not None and expected <= set(state.get("brokers", expected))
            for state in (await self.node_states()).values()
        )

    async def write_document(self) -> None:
        """Write cluster.json from the current state of the nodes."""
        controller = await self.active_controller()
        states = [state for state in (await self.node_states()).values() if state]
        brokers = []
        for node in self.nodes.values():
            if node.is_running() and node.is_ready():
                brokers.append({"id": node.id, "pid": node.pid, **node.addresses})
        cluster_ids = [state["cluster_id"] for state in states if state.get("cluster_id")]
        self.document = {
            "schema_version": SCHEMA_VERSION,
            "cluster_id": cluster_ids[0] if cluster_ids else None,
            "bootstrap_servers": ",".join(
                next(iter(broker["listeners"].values())) for broker in brokers
            ),
            "zookeeper_connect": self.zookeeper_connect,
            "controller_id": controller["id"] if controller is not None else None,
            "evidence_dir": str(self.record.folder),
            "control_url": self.control_url,
            "control_token_file": str(self.directory.control_token) if self.control_url else None,
            "brokers": brokers,
            "zookeeper": self._zookeeper_document(),
        }
        write_json(self.directory.cluster_json, self.document)

    def _zookeeper_document(self) -> dict[str, Any] | None:
        if self.zookeeper is None:
            return None
        members = [
            {"id": member.id, "pid": self.zookeeper.pid(member.id), "data_dir": str(member.folder)}
            for member in self.zookeeper.members
        ]
        result = {"pid": members[0]["pid"], "data_dir": members[0]["data_dir"]}
        return result if len(members) == 1 else {**result, "members": members}

    def pin(self, controller_id: int) -> None:
        """Start nodes with this pinned controller from now on."""
        self.pinned = controller_id
        for node in self.nodes.values():
            node.plan.properties["bridgehead.controller.pinned"] = str(controller_id)

    def thaw_later(self, node: NodeProcess, seconds: float) -> None:
        """Resume a frozen node after `seconds`."""

        async def thaw() -> None:
            await asyncio.sleep(seconds)
            try:  # Recorded first: the judge knows by it which events came after the pause.
                self.record.fault_healed("pause", node.id)
            finally:
                node.thaw()
            self.announce(f"Broker {node.id} resumes after {seconds:g} s.")

        task = asyncio.create_task(thaw())
        self._thaws[task] = node
        task.add_done_callback(lambda done: self._thaws.pop(done, None))

    def thaw_now(self) -> None:
        """Resume every frozen node."""
        for node in set(self._thaws.values()):
            try:
                self.end_pause(node)
            finally:
                node.thaw()

    def end_pause(self, node: NodeProcess) -> None:
        """Record that a frozen node is about to resume or end, and cancel its timer."""
        for task, frozen in list(self._thaws.items()):
            if frozen is node:
                task.cancel()
                del self._thaws[task]
                self.record.fault_healed("pause", node.id)

    def start_process(self, node: NodeProcess) -> None:
        """Start a node. Raises ClusterError if the cluster is stopping or the node is running."""
        if self.phase == "stopping":
            raise ClusterError("The cluster is stopping.")
        node.start()

    async def stop(self) -> None:
        """Stop the nodes, then ZooKeeper, and seal the evidence. Later calls do nothing."""
        async with self._stopping:
            if not self._is_stopped:
                self._is_stopped = True
                await self._stop()

    async def _stop(self) -> None:
        with contextlib.suppress(OSError):  # A full disk must not prevent the stop.
            self.thaw_now()
            self.record.ending(sum(node.is_running() for node in self.nodes.values()))
        for node in self.nodes.values():
            node.request_stop()
        await asyncio.gather(*(asyncio.to_thread(node.stop) for node in self.nodes.values()))
        with contextlib.suppress(OSError):  # A full disk must not prevent the stop.
            self.record.note_ends(self.nodes.values())
        kept = self.settings.keep_evidence
        exits = self.zookeeper.exits() if self.zookeeper is not None else {}
        if kept and self.nodes and not exits:
            await self.record.dump(self.zookeeper_connect, "final")
        elif kept and self.nodes:
            self.announce("ZooKeeper could not be dumped (final): it has exited.")
        if self.zookeeper is not None:
            await asyncio.to_thread(self.zookeeper.stop if kept else self.zookeeper.kill)
        if kept:
            await self.record.seal()
        self.record.close()
        self.directory.cluster_json.unlink(missing_ok=True)


def _kraft_controller(controller_id: int, states: list[dict[str, Any]]) -> dict[str, Any] | None:
    """Return the KRaft controller that all brokers follow; None if not all of them do."""
    if not all((state.get("migration") or {}).get("controller_is_kraft") for state in states):
        return None
    epoch = states[0].get("controller_epoch")
    return {"id": controller_id, "controller_epoch": epoch, "is_kraft": True}
