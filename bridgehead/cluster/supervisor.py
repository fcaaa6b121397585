"""The process behind `bridgehead up`: starts ZooKeeper and the nodes, and stays until told to stop.

Read first: it outlives its nodes' deaths and restarts none by itself. `steering` holds what it can
be asked over the socket in its folder. Whatever ends it (a signal, `down`, a failure while
starting, the end of its parent), the nodes are stopped first, then ZooKeeper, and no process stays
behind.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
from collections.abc import Callable
from typing import Any

from bridgehead.cluster import steering
from bridgehead.cluster.broker_certificates import ensure_wanted
from bridgehead.cluster.control_socket import ControlError, serve
from bridgehead.cluster.data_directory import DataDirectory, write_json
from bridgehead.cluster.errors import ClusterError
from bridgehead.cluster.java import find_java
from bridgehead.cluster.node_process import NodeProcess, clear_stray_node
from bridgehead.cluster.plan import (
    DEFAULT_ZOOKEEPER_PORT,
    LOOPBACK,
    Ports,
    plan_nodes,
)
from bridgehead.cluster.run_record import RunRecord
from bridgehead.cluster.set_up import set_up, with_certificates
from bridgehead.cluster.settings import ClusterSettings
from bridgehead.cluster.zookeeper import EmbeddedZooKeeper, stop_stray_zookeeper
from bridgehead.cluster.zookeeper_credentials import embedded_chroot, with_credentials

Announce = Callable[[str], None]

_ZOOKEEPER_TIMEOUT_S = 30.0
_READY_TIMEOUT_S = 60.0
_POLL_S = 0.02
_WATCH_S = 0.2


class Supervisor:
    """One cluster, from `run` to its end."""

    def __init__(
        self, settings: ClusterSettings, announce: Announce, parent_pipe: int | None = None
    ) -> None:
        """`announce` is told, in sentences, what happens; the end of `parent_pipe` is the end."""
        self.settings = settings
        self.directory = DataDirectory(settings.data_dir)
        self.nodes: dict[int, NodeProcess] = {}
        self.zookeeper: EmbeddedZooKeeper | None = None
        self.record = RunRecord(self.directory.root, settings, announce)
        self.pinned = settings.controller
        """The broker that is controller whenever it is there; None: whoever comes first."""
        self.phase = "starting"
        self.document: dict[str, Any] = {}
        """What cluster.json says; empty until the cluster is ready."""
        self._announce = announce
        self._parent_pipe = parent_pipe
        self._stopping = asyncio.Event()
        self._thaws: set[asyncio.Task[None]] = set()

    def request_stop(self) -> None:
        """Begins the orderly end; returns at once."""
        self._stopping.set()

    async def run(self, on_ready: Callable[[dict[str, Any]], None]) -> None:
        """Starts everything, tells `on_ready` what cluster.json says, returns after the end.

        Raises:
            ClusterError: the cluster could not be started; nothing is left running.
        """
        lock = self.directory.claim()
        self._obey_signals()
        server: asyncio.Server | None = None
        watcher: asyncio.Task[None] | None = None
        try:
            server = await serve(self.directory.control_socket, self._steer)
            if await self._start_unless_stopped():
                self.phase = "ready"
                on_ready(self.document)
                watcher = asyncio.create_task(self._watch_nodes())
                await self._stopping.wait()
        except OSError as error:
            where = error.filename or self.directory.root
            raise ClusterError(
                f"{where} cannot be used ({error.strerror or error}): choose another --data-dir."
            ) from error
        finally:
            self.phase = "stopping"
            if watcher is not None:
                watcher.cancel()
            await self._stop_everything()
            if server is not None:
                server.close()
            self.directory.control_socket.unlink(missing_ok=True)
            os.close(lock)

    async def _start_unless_stopped(self) -> bool:
        start = asyncio.create_task(self._start())
        stop = asyncio.create_task(self._stopping.wait())
        try:
            await asyncio.wait((start, stop), return_when=asyncio.FIRST_COMPLETED)
            if self._stopping.is_set():
                return False
            start.result()
            return True
        finally:
            for task in (start, stop):
                task.cancel()
                with contextlib.suppress(asyncio.CancelledError, ClusterError, OSError):
                    await task

    async def _start(self) -> None:
        self.directory.cluster_json.unlink(missing_ok=True)
        self._clear_strays()
        settings = with_certificates(self.settings, self.directory.tls)
        ports = Ports()
        embedded = None
        if self.settings.zookeeper_connect is None:
            embedded = EmbeddedZooKeeper(
                self.directory.zookeeper,
                self._zookeeper_ports(ports),
                java=find_java(),
                heap_mib=self.settings.zookeeper_heap_mib,
            )
        plans = plan_nodes(  # before anything is started: a taken port is found at once
            with_credentials(settings),
            ports,
            zookeeper_connect=self.settings.zookeeper_connect
            or (embedded and embedded.connect + embedded_chroot(settings))
            or "",
            run_id=self.record.run_id,
            evidence=self.record.folder,
        )
        # Made while ZooKeeper starts.
        certificates = asyncio.create_task(asyncio.to_thread(ensure_wanted, self.settings))
        is_new = embedded is not None and not embedded.has_history()
        if embedded is not None:
            self.zookeeper = embedded
            embedded.start()
            await self._until_serving(embedded)
        else:
            await self._until_reachable(self.settings.zookeeper_connect or "")
        await self._begin_record(is_new)
        await certificates
        for plan in plans:
            node = NodeProcess(plan, self.directory.node(plan.id), self.settings.node_command)
            self.nodes[plan.id] = node
            node.start()
        await self._until_ready()
        await set_up(list(self.nodes.values()), self.settings.set_up)
        await self.write_document()

    async def _begin_record(self, is_new: bool) -> None:
        """What stands in ZooKeeper already is not this run's doing."""
        _, slash, chroot = self._zookeeper_connect().partition("/")
        members = None if self.zookeeper is None else self.zookeeper.members
        folders = None if members is None else [member.folder for member in members]
        self.record.begin(chroot=slash + chroot, log_folders=folders)
        if is_new:
            self.record.begin_empty()
        elif self.settings.keep_evidence:
            await self.record.dump(self._zookeeper_connect(), "first")

    def _zookeeper_connect(self) -> str:
        if self.settings.zookeeper_connect is not None:
            return self.settings.zookeeper_connect
        known = self.zookeeper
        return known.connect + embedded_chroot(self.settings) if known is not None else ""

    def _zookeeper_ports(self, ports: Ports) -> list[int]:
        if self.settings.zookeeper_members > 1:
            return [ports.choose() for _ in range(9)]
        if self.settings.ports_auto:
            return [ports.choose()]
        return [ports.prefer(LOOPBACK, DEFAULT_ZOOKEEPER_PORT)]

    def _clear_strays(self) -> None:
        for pid in stop_stray_zookeeper(self.directory.zookeeper):
            self._announce(f"Ended ZooKeeper (pid {pid}), left behind by an earlier run.")
        for folder in sorted((self.directory.root / "nodes").glob("*/")):
            pid_left = clear_stray_node(folder)
            if pid_left is not None:
                self._announce(f"Ended a node (pid {pid_left}), left behind by an earlier run.")

    async def _until_serving(self, zookeeper: EmbeddedZooKeeper) -> None:
        deadline = asyncio.get_running_loop().time() + _ZOOKEEPER_TIMEOUT_S
        while not await asyncio.to_thread(zookeeper.is_serving):
            if asyncio.get_running_loop().time() > deadline:
                raise ClusterError(
                    f"ZooKeeper did not serve within {_ZOOKEEPER_TIMEOUT_S:.0f} s: see "
                    f"{self.directory.zookeeper}."
                )
            await asyncio.sleep(_POLL_S)
        self._announce(f"ZooKeeper serves at {zookeeper.connect}.")

    async def _until_reachable(self, connect: str) -> None:
        """Any of the external servers takes a connection."""
        for server in connect.partition("/")[0].split(","):
            host, _, port = server.strip().rpartition(":")
            if not host or not port.isdigit():
                raise ClusterError(f"--zookeeper {connect!r} is not HOST:PORT[,...][/chroot].")
            with contextlib.suppress(OSError):
                async with asyncio.timeout(3):
                    _, writer = await asyncio.open_connection(host, int(port))
                    writer.close()
                    return
        raise ClusterError(
            f"No ZooKeeper answers at {connect}: start it, correct --zookeeper, or leave the "
            "option out to have one started."
        )

    async def _until_ready(self) -> None:
        """Every node serves, and all name the same controller, which agrees."""
        deadline = asyncio.get_running_loop().time() + _READY_TIMEOUT_S
        while not (await self._all_ready() and await self.all_know_each_other()):
            if asyncio.get_running_loop().time() > deadline:
                raise ClusterError(
                    f"{await self._what_is_late()} within {_READY_TIMEOUT_S:.0f} s: see the logs "
                    f"of the nodes in {self.directory.root / 'nodes'}."
                )
            await asyncio.sleep(_POLL_S)

    async def _what_is_late(self) -> str:
        late = [str(node.id) for node in self.nodes.values() if node.ready() is None]
        if late:
            return f"Brokers {', '.join(late)} did not serve"
        if await self.controller_in_office() is None:
            return "No controller took office"
        return "The brokers did not all hear of each other"

    async def _all_ready(self) -> bool:
        # Every node is looked at, the first that is late must not hide one that has ended.
        ready = [node.ready() for node in self.nodes.values()]
        return None not in ready

    async def node_states(self) -> dict[int, dict[str, Any] | None]:
        """Every node's own account of itself, asked at once."""
        states = await asyncio.gather(*(node.state() for node in self.nodes.values()))
        return dict(zip(self.nodes, states, strict=True))

    async def controller_in_office(self) -> dict[str, Any] | None:
        """The controller's `state`, once every node that answers names it; else None."""
        states = await self.node_states()
        answers = [state for state in states.values() if state is not None]
        named = {state.get("controller_id") for state in answers}
        controller_id = named.pop() if len(named) == 1 else None
        if controller_id is None:
            return None
        state = states.get(int(controller_id))
        return state if state is not None and state.get("is_controller") else None

    async def all_know_each_other(self) -> bool:
        """A controller is in office, the one that was asked for, and every node knows every other.

        Office is taken as soon as the state is loaded; a broker that registered meanwhile becomes
        known a moment later, and until then it gets no replicas.
        """
        controller = await self.controller_in_office()
        states = await self.node_states()
        everybody = set(self.nodes)
        in_office = controller is not None and self.pinned in (None, controller["id"])
        return in_office and all(
            state is not None and everybody <= set(state.get("brokers", everybody))
            for state in states.values()
        )

    async def write_document(self) -> None:
        """Writes cluster.json from what the nodes say now."""
        controller = await self.controller_in_office()
        states = [state for state in (await self.node_states()).values() if state]
        brokers = []
        for node in self.nodes.values():
            said = node.ready() if node.is_running() else None
            if said is not None:
                brokers.append(
                    {
                        "id": node.id,
                        "pid": node.pid,
                        "listeners": said["listeners"],
                        "metrics_url": said["metrics_url"],
                    }
                )
        cluster_ids = [state["cluster_id"] for state in states if state.get("cluster_id")]
        self.document = {
            "cluster_id": cluster_ids[0] if cluster_ids else None,
            "bootstrap_servers": ",".join(
                next(iter(broker["listeners"].values())) for broker in brokers
            ),
            "zookeeper_connect": self._zookeeper_connect(),
            "controller_id": controller["id"] if controller is not None else None,
            "evidence_dir": str(self.record.folder),
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
        """Nodes that are started from now on are told of this pinned controller."""
        self.pinned = controller_id
        for node in self.nodes.values():
            node.plan.properties["bridgehead.controller.pinned"] = str(controller_id)

    def thaw_later(self, node: NodeProcess, seconds: float) -> None:
        """Ends a node's freeze after `seconds`."""

        async def thaw() -> None:
            await asyncio.sleep(seconds)
            node.thaw()
            self.record.fault_healed("freeze", node.id)
            self._announce(f"Broker {node.id} goes on after {seconds:g} s.")

        task = asyncio.create_task(thaw())
        self._thaws.add(task)
        task.add_done_callback(self._thaws.discard)

    async def _watch_nodes(self) -> None:
        """Says when a node ends by itself; its death is news, not an emergency."""
        while True:
            self.record.note_ends(self.nodes.values())
            for node in self.nodes.values():
                status = node.exit_status()
                if status is not None and node.condition in ("running", "frozen"):
                    node.condition = "ended"
                    self._announce(f"Broker {node.id} ended: {_describe_status(status)}.")
            await asyncio.sleep(_WATCH_S)

    async def _steer(self, message: dict[str, Any]) -> dict[str, Any]:
        try:
            return await steering.obey(self, message)
        except (ClusterError, OSError) as error:
            raise ControlError(str(error)) from error

    async def _stop_everything(self) -> None:
        for task in self._thaws:
            task.cancel()
        for node in self.nodes.values():
            node.ask_to_stop()
        await asyncio.gather(*(asyncio.to_thread(node.stop) for node in self.nodes.values()))
        self.record.note_ends(self.nodes.values())
        if self.settings.keep_evidence and self.nodes:
            await self.record.dump(self._zookeeper_connect(), "final")
        if self.zookeeper is not None:
            kept = self.settings.keep_evidence
            await asyncio.to_thread(self.zookeeper.stop if kept else self.zookeeper.kill)
        if self.settings.keep_evidence:
            await self.record.seal()
        self.record.close()
        self.directory.cluster_json.unlink(missing_ok=True)

    def _obey_signals(self) -> None:
        loop = asyncio.get_running_loop()
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            loop.add_signal_handler(number, self.request_stop)
        if self._parent_pipe is not None:
            loop.add_reader(self._parent_pipe, self._parent_spoke, self._parent_pipe)

    def _parent_spoke(self, pipe: int) -> None:
        if not os.read(pipe, 4096):
            asyncio.get_running_loop().remove_reader(pipe)
            self.request_stop()


def supervise(
    settings: ClusterSettings,
    *,
    announce: Announce,
    on_ready: Callable[[dict[str, Any]], None],
    parent_pipe: int | None = None,
) -> None:
    """Runs one cluster in this process until it is told to stop.

    Raises:
        ClusterError: it could not be started.
    """

    async def main() -> None:
        await Supervisor(settings, announce, parent_pipe).run(on_ready)

    asyncio.run(main())


def _describe_status(status: int) -> str:
    return f"killed by signal {-status}" if status < 0 else f"exit status {status}"
