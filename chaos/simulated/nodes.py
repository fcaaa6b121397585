"""The nodes of a simulated cluster: production nodes on the simulated environment."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any, Final

from bridgehead.cluster.properties import format_properties
from broker_proxy.metadata.session import ZooKeeperWatcher
from chaos.bugs import faulty_parts
from chaos.failpoints import with_failpoints
from chaos.simulated.envelope_stream import EnvelopeNetwork
from chaos.simulated.network import LOOPBACK, NetworkLoop
from chaos.simulated.virtual_time import Process
from chaos.simulated.zookeeper_session import SimulatedSession, ZooKeeperService
from cluster_model.session_state import SessionState
from controller.direct.session import DirectSession
from controller.store.zookeeper import ZooKeeperStore
from envelope.channel import ControllerChannel
from node.collaborators import Collaborators
from node.config import read_config
from node.run.lifecycle import Node

FIRST_PORT: Final = 9_092


class SimulatedNode:
    """One node; a restart gives it a new process."""

    def __init__(self, cluster: SimulatedCluster, broker: int) -> None:
        self._cluster = cluster
        self.id = broker
        self._exit_status: int | None = None
        self.process: Process | None = None
        self.node: Node | None = None
        self._expire_controller: Callable[[], Awaitable[None]]

    @property
    def is_running(self) -> bool:
        """Whether the node's process exists; it may be paused."""
        return self.process is not None

    async def start(self) -> None:
        """Start a process; return when the node serves."""
        self.process, self._exit_status = Process(str(self.id)), None
        await self._run(self._start())

    async def _start(self) -> None:
        config = read_config(format_properties(self._cluster.properties(self.id)))
        folder = self._cluster.data_dir / str(self.id)
        parts = faulty_parts(
            config,
            folder,
            self._cluster.seeded_bugs,
            self._cluster.collaborators,
            partial(self._cluster.extend, self),
        )
        self._expire_controller = parts.controller.expire
        self.node = Node(parts)
        await self.node.start()

    async def reached(self, process: Process | None, failpoint: str) -> None:
        """Hold the process if the failpoint is armed."""
        held = self._cluster.armed.pop(failpoint, None)
        if held is not None and process is not None:
            process.is_paused = True
            held.set_result(self.id)
            await asyncio.sleep(0)

    async def stop(self) -> None:
        """Stop the node, as SIGTERM does; its process ends."""
        assert self.node is not None
        await self._run(self.node.stop("SIGTERM"))
        self._end(0)

    def kill(self) -> None:
        """End the process without warning; events that it has not flushed are lost."""
        self._end(-signal.SIGKILL)

    async def expire_controller(self) -> None:
        """Expire the session of this node's controller."""
        await self._run(self._expire_controller())

    def exit_status(self) -> int | None:
        """Return the last process's exit status; None while it runs."""
        return self._exit_status

    def _end(self, status: int) -> None:
        self._exit_status = status
        process, self.process, self.node = self.process, None, None
        assert process is not None
        process.has_ended = True
        process.held.clear()
        self._cluster.loop.network.process_ended(process)

    async def _run(self, step: Any) -> None:
        """Run a coroutine in the node's process."""
        assert self.process is not None
        task = asyncio.get_running_loop().create_task(step, context=self.process.context)
        await task


class SimulatedCluster:
    """All nodes and ZooKeeper."""

    def __init__(
        self,
        loop: NetworkLoop,
        service: ZooKeeperService,
        *,
        data_dir: Path,
        evidence_dir: Path,
        brokers: int,
        properties: Mapping[str, str],
        node_properties: Mapping[int, Mapping[str, str]],
        seeded_bugs: frozenset[str],
    ) -> None:
        self.loop = loop
        self.service = service
        self.data_dir = data_dir
        self.seeded_bugs = seeded_bugs
        self._evidence_dir = evidence_dir
        self._properties = properties
        self._node_properties = node_properties
        self.collaborators = collaborators(loop, service)
        self.armed: dict[str, asyncio.Future[int]] = {}  # by failpoint
        # Derives the collaborators of a node that is about to start.
        self.extend: Callable[[SimulatedNode, Collaborators], Collaborators] = _with_failpoints
        self.nodes = {number: SimulatedNode(self, number) for number in range(1, brokers + 1)}

    def address(self, broker: int, listener: str | None = None) -> str:
        """Return the address of a broker's listener; None names the first one."""
        listeners = self.properties(broker)["listeners"].split(",")
        for text in listeners:
            name, _, address = text.partition("://")
            if listener in (None, name):
                return address
        raise ValueError(f"broker {broker} has no listener {listener}")

    def properties(self, broker: int) -> dict[str, str]:
        """Return the properties of one node."""
        texts = self._properties.get("listeners", "PLAINTEXT://:0").split(",")
        names = [text.partition("://")[0] for text in texts]
        listeners = [
            f"{name}://{LOOPBACK}:{FIRST_PORT + 100 * index + broker}"
            for index, name in enumerate(names)
        ]
        return {
            **self._properties,
            "broker.id": str(broker),
            "broker.rack": f"rack-{broker}",
            "listeners": ",".join(listeners),
            "advertised.listeners": ",".join(listeners),
            "bridgehead.grpc.listener": f"{LOOPBACK}:0",
            "bridgehead.metrics.listener": f"{LOOPBACK}:0",
            "zookeeper.connect": f"{LOOPBACK}:2181",
            # The data plane runs work in threads, which the simulation does not have.
            "bridgehead.data.plane": "false",
            "bridgehead.request.log": "OFF",  # The evidence has the same information.
            "bridgehead.run.id": self._evidence_dir.name.removeprefix("run="),
            "bridgehead.evidence.dir": str(self._evidence_dir / f"node={broker}"),
            **self._node_properties.get(broker, {}),
        }

    async def start(self) -> None:
        """Start all nodes at the same time; return when all of them serve."""
        await asyncio.gather(*(node.start() for node in self.nodes.values()))

    async def stop(self) -> None:
        """Stop all running nodes."""
        await asyncio.gather(*(node.stop() for node in self.nodes.values() if node.is_running))

    def controller(self) -> int | None:
        """Return the active controller if every broker that is not paused names it."""
        states = {}
        for node in self.nodes.values():
            if node.node is not None and node.process is not None and not node.process.is_paused:
                states[node.id] = state = node.node.status()
                if state["controller_id"] is None:
                    return None
        named = {state["controller_id"] for state in states.values()}
        controller = named.pop() if len(named) == 1 else None
        if controller not in states:
            return None
        return int(controller) if states[controller]["is_controller"] else None

    def is_complete(self) -> bool:
        """Return whether there is a controller, and every broker knows every other."""
        expected = set(self.nodes)
        return self.controller() is not None and all(
            node.node is not None and expected <= set(node.node.status()["brokers"])
            for node in self.nodes.values()
        )


def _with_failpoints(node: SimulatedNode, faulty: Collaborators) -> Collaborators:
    return with_failpoints(faulty, partial(node.reached, node.process))


def collaborators(loop: NetworkLoop, service: ZooKeeperService) -> Collaborators:
    """Return the constructors that put a node on the simulated environment."""
    envelopes = EnvelopeNetwork(loop.network)

    class Store(ZooKeeperStore):
        """A store whose sessions are simulated."""

        def _new_session(self) -> SimulatedSession:
            return SimulatedSession(
                service,
                session_timeout_ms=self._session_timeout_ms,
                on_state=self._state_changed,
                on_reply=self._on_reply,
                writes_metadata=True,
            )

    class Direct(DirectSession):
        """A broker's session for direct writes, simulated."""

        def _new_session(self, on_state: Callable[[SessionState], None]) -> SimulatedSession:
            return SimulatedSession(
                service,
                session_timeout_ms=self._session_timeout_ms,
                on_state=on_state,
                on_reply=self._on_reply,
                writes_metadata=True,
            )

    class Watcher(ZooKeeperWatcher):
        """A watcher whose sessions are simulated."""

        def _new_session(self) -> SimulatedSession:
            return SimulatedSession(
                service,
                session_timeout_ms=self._session_timeout_ms,
                on_state=self._state_changed,
                on_reply=self._on_reply,
            )

    return Collaborators(
        store=Store,
        direct_session=Direct,
        watcher=Watcher,
        channel=partial(ControllerChannel, connect=envelopes.connect),
        serve_envelopes=envelopes.serve,
    )
