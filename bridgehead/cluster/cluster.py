"""`Cluster`: a cluster of broker processes as a Python value, for tests and programs.

Read first: the cluster runs in processes of its own, under a supervisor that ends with this process
however this process ends. Every method blocks until what it says has happened.

    with Cluster(brokers=3) as cluster:
        admin = AdminClient({"bootstrap.servers": cluster.bootstrap_servers})
        cluster.kill_controller()
"""

from __future__ import annotations

import dataclasses
import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Literal, Self

from bridgehead.cluster.client import ClusterClient
from bridgehead.cluster.errors import ClusterError
from bridgehead.cluster.launch import launch
from bridgehead.cluster.settings import ClusterSettings, RunSettings, check_settings
from bridgehead.cluster.upgrade import upgrade

_POLL_S = 0.02


@dataclasses.dataclass(frozen=True, slots=True)
class Broker:
    """One broker as it was when it became ready. `listeners`: name to `host:port`."""

    id: int
    pid: int
    listeners: dict[str, str]
    metrics_url: str


class Cluster:
    """A cluster of real processes over a real ZooKeeper; a context manager.

    Args:
        brokers: how many; their ids are 1 to `brokers`.
        data_dir: where everything is kept; None: a temporary folder, removed at the end.
        properties: Kafka's `server.properties` for every broker.
        node_properties: those of one broker alone, by its id.
        ports: `"auto"` for free ports, or the base port.
        controller: the broker that is controller whenever it is there.
        zookeeper: `HOST:PORT[,...][/chroot]` of a running ZooKeeper; None: the embedded one.
        zookeeper_members: 1 or 3 embedded servers.
        run: what this run is for: a scenario's name and seed, the properties it is to prove.
        node_command: what starts a node instead of `python -m node`; for tests of supervision.
    """

    def __init__(
        self,
        brokers: int = 3,
        *,
        data_dir: str | Path | None = None,
        properties: Mapping[str, str] | None = None,
        node_properties: Mapping[int, Mapping[str, str]] | None = None,
        ports: int | Literal["auto"] = "auto",
        controller: int | None = None,
        zookeeper: str | None = None,
        zookeeper_members: int = 1,
        run: RunSettings | None = None,
        node_command: Sequence[str] = (),
    ) -> None:
        self._temporary = data_dir is None
        folder = Path(tempfile.mkdtemp(prefix="bridgehead-") if data_dir is None else data_dir)
        self.data_dir = folder.resolve()
        self._settings = ClusterSettings(
            data_dir=self.data_dir,
            brokers=brokers,
            base_port=None if ports == "auto" else ports,
            ports_auto=ports == "auto",
            controller=controller,
            zookeeper_connect=zookeeper,
            zookeeper_members=zookeeper_members,
            properties=dict(properties or {}),
            node_properties={node: dict(own) for node, own in (node_properties or {}).items()},
            node_command=tuple(node_command),
            run=run or RunSettings(),
            keep_evidence=not self._temporary,
        )
        self._client = ClusterClient(self.data_dir)
        self._supervisor: subprocess.Popen[bytes] | None = None
        self._document: dict[str, Any] = {}

    def start(self) -> Self:
        """Starts the cluster; returns when every broker serves and a controller is in office.

        Raises:
            ClusterError: it could not be started, in one sentence.
        """
        check_settings(self._settings)
        self._supervisor, self._document = launch(self._settings, tethered=True)
        return self

    def stop(self) -> None:
        """Ends every process; may be called twice."""
        if self._supervisor is not None:
            self._supervisor.terminate()
            self._supervisor.wait()
            if self._supervisor.stdin is not None:
                self._supervisor.stdin.close()
            self._supervisor = None
        if self._temporary:
            shutil.rmtree(self.data_dir, ignore_errors=True)

    def __enter__(self) -> Self:
        """Starts the cluster."""
        try:
            return self.start()
        except BaseException:
            self.stop()
            raise

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """Stops the cluster."""
        self.stop()

    @property
    def bootstrap_servers(self) -> str:
        """`host:port,...`: the first listener of every broker."""
        return str(self._document["bootstrap_servers"])

    @property
    def zookeeper_connect(self) -> str:
        """`host:port[,...][/chroot]` of the ZooKeeper."""
        return str(self._document["zookeeper_connect"])

    @property
    def cluster_id(self) -> str | None:
        """Kafka's cluster id."""
        cluster_id: str | None = self._document["cluster_id"]
        return cluster_id

    @property
    def evidence_dir(self) -> Path:
        """The folder that `bridgehead judge` reads."""
        return Path(self._document["evidence_dir"])

    @property
    def brokers(self) -> dict[int, Broker]:
        """Every broker by its id; pids as they are now."""
        status = self._client.status()
        return {
            each["id"]: Broker(
                each["id"], each["pid"] or 0, each["listeners"], each["metrics_url"] or ""
            )
            for each in status["brokers"]
        }

    def bootstrap_server(self, broker_id: int, listener: str | None = None) -> str:
        """`host:port` of one broker: of the named listener, or its first."""
        for broker in self._document["brokers"]:
            if broker["id"] == broker_id:
                listeners: dict[str, str] = broker["listeners"]
                return listeners[listener] if listener else next(iter(listeners.values()))
        raise ClusterError(f"There is no broker {broker_id} in this cluster.")

    def status(self) -> dict[str, Any]:
        """What `bridgehead status --json` prints."""
        return self._client.status()

    def controller_id(self) -> int | None:
        """The broker that is controller and known to all as such; None while there is none."""
        controller_id = self._client.controller()["controller_id"]
        return None if controller_id is None else int(controller_id)

    def wait_for_controller(self, *, timeout_s: float = 30.0, other_than: int | None = None) -> int:
        """Blocks until a controller is in office and known to every broker that runs.

        Raises:
            ClusterError: none within `timeout_s`.
        """
        deadline = time.monotonic() + timeout_s
        while True:
            controller_id = self.controller_id()
            if controller_id is not None and controller_id != other_than:
                return controller_id
            if time.monotonic() > deadline:
                raise ClusterError(f"No controller came into office within {timeout_s:g} s.")
            time.sleep(_POLL_S)

    def kill_controller(self) -> int:
        """SIGKILL for the controller's process; the id of the broker that died."""
        return int(self._client.kill_controller()["id"])

    def freeze_controller(self, seconds: float) -> int:
        """SIGSTOP for the controller's process, SIGCONT after `seconds`; returns at once."""
        return int(self._client.freeze_controller(seconds)["id"])

    def expire_controller(self) -> int:
        """Ends the controller's ZooKeeper session from outside; the broker's id."""
        return int(self._client.expire_controller()["id"])

    def move_controller(self, broker_id: int) -> None:
        """Makes a broker the controller; returns when every broker knows it."""
        self._client.move_controller(broker_id)

    def upgrade(self, say: Callable[[str], None] = lambda _: None) -> int:
        """Takes a cluster below the bridge release over it, as `bridgehead upgrade` does.

        `say` is told each step; returns how many restarts it took.
        """
        return upgrade(self._client, say)

    def start_node(self, broker_id: int) -> None:
        """Starts a broker that does not run; returns when it serves."""
        self._client.start_node(broker_id)

    def stop_node(self, broker_id: int) -> None:
        """Ends a broker politely."""
        self._client.stop_node(broker_id)

    def kill_node(self, broker_id: int) -> None:
        """SIGKILL for a broker."""
        self._client.kill_node(broker_id)
