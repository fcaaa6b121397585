"""`Cluster`: a cluster of broker processes, for tests and programs.

When this process exits, even because of SIGKILL, the supervisor stops the cluster. Every method
except `freeze_controller` blocks until its effect is complete.

    with Cluster(brokers=3) as cluster:
        admin = AdminClient({"bootstrap.servers": cluster.bootstrap_servers})
        cluster.kill_controller()
"""

from __future__ import annotations

import abc
import asyncio
import dataclasses
import functools
import shutil
import tempfile
from collections.abc import Callable, Coroutine, Mapping, Sequence
from pathlib import Path
from typing import Any, Concatenate, Literal, ParamSpec, Self, TypeVar

from bridgehead.cluster.access_plan import AccessPlan
from bridgehead.cluster.client import ControlClient
from bridgehead.cluster.errors import HIDE_FROM_PYTEST, ClusterError
from bridgehead.cluster.faults import Faults
from bridgehead.cluster.launch import launch
from bridgehead.cluster.launcher import SupervisorProcess
from bridgehead.cluster.settings import (
    ClusterSettings,
    ControlSettings,
    RunSettings,
    check_settings,
)
from bridgehead.cluster.upgrade import upgrade

__tracebackhide__ = HIDE_FROM_PYTEST
P = ParamSpec("P")
T = TypeVar("T")


@dataclasses.dataclass(frozen=True, slots=True)
class Broker:
    """One broker. `listeners` maps names to `host:port`.

    While the broker does not run, `pid` is 0, and the addresses are those where it served last.
    """

    id: int
    pid: int
    listeners: dict[str, str]
    metrics_url: str


class StartStop(abc.ABC):
    """A context manager that calls `start` and `stop`. If `start` fails, it calls `stop` too."""

    @abc.abstractmethod
    def start(self) -> Self:
        """Start."""

    @abc.abstractmethod
    def stop(self) -> None:
        """Stop; may be called twice."""

    def __enter__(self) -> Self:
        """Start."""
        try:
            return self.start()
        except BaseException:
            self.stop()
            raise

    def __exit__(self, *_: object) -> None:
        """Stop."""
        self.stop()


class Cluster(StartStop):
    """A cluster of real broker processes with a real ZooKeeper; a context manager.

    Args:
        brokers: the number of brokers; their ids are 1 to `brokers`.
        data_dir: the cluster's folder. None: a temporary folder, which is removed at the end.
        properties: properties of every broker, as in Kafka's `server.properties`.
        node_properties: properties of single brokers, by id.
        listeners, users, acls: as in cluster.yaml (docs/security.md).
        policies: classes that implement interfaces of bridgehead.policy.
        ports: `"auto"` for free ports, or the base port.
        controller: the broker that is controller whenever it runs.
        zookeeper: `HOST:PORT[,...][/chroot]` of a running ZooKeeper. None: the embedded one.
        zookeeper_members: the number of embedded ZooKeeper servers, 1 or 3.
        run: the run's scenario, seed and expected properties.
        seal_key: the file of the key that signs the run's manifest; needs `data_dir`.
        control: the address of the control API (docs/control-api.md). None: there is none.
        node_command: the command that replaces `python -m node` in tests.
    """

    def __init__(
        self,
        brokers: int = 3,
        *,
        data_dir: str | Path | None = None,
        properties: Mapping[str, str] | None = None,
        node_properties: Mapping[int, Mapping[str, str]] | None = None,
        listeners: Mapping[str, Any] | None = None,
        users: Mapping[str, Any] | None = None,
        acls: Sequence[Mapping[str, Any]] | None = None,
        policies: Sequence[type[Any]] = (),
        ports: int | Literal["auto"] = "auto",
        controller: int | None = None,
        zookeeper: str | None = None,
        zookeeper_members: int = 1,
        run: RunSettings | None = None,
        seal_key: str | Path | None = None,
        control: ControlSettings | None = None,
        node_command: Sequence[str] = (),
    ) -> None:
        self._temporary = data_dir is None
        folder = Path(tempfile.mkdtemp(prefix="bridgehead-") if data_dir is None else data_dir)
        self.data_dir = folder.resolve()
        named, self._python_path = _with_policies(properties or {}, policies)
        wanted, access = _with_security(named, listeners, users, acls)
        self._settings = ClusterSettings(
            data_dir=self.data_dir,
            brokers=brokers,
            base_port=None if ports == "auto" else ports,
            ports_auto=ports == "auto",
            controller=controller,
            zookeeper_connect=zookeeper,
            zookeeper_members=zookeeper_members,
            properties=wanted,
            node_properties={
                node: dict(properties_of_node)
                for node, properties_of_node in (node_properties or {}).items()
            },
            control=control,
            node_command=tuple(node_command),
            run=run or RunSettings(),
            access=access,
            seal_key=None if seal_key is None else Path(seal_key),
            keep_evidence=not self._temporary,
        )
        self._client = ControlClient(self.data_dir)
        self._supervisor: SupervisorProcess | None = None
        self._document: dict[str, Any] = {}

    def start(self) -> Self:
        """Start the cluster; return when every broker serves and a controller is active.

        Raises:
            ClusterError: the cluster could not be started.
        """
        check_settings(self._settings)
        self._supervisor, self._document = launch(
            self._settings, detached=False, python_path=self._python_path
        )
        return self

    def stop(self) -> None:
        """Stop every process; may be called twice."""
        if self._supervisor is not None:
            self._supervisor.terminate()
            self._supervisor.wait()
            if self._supervisor.stdin is not None:
                self._supervisor.stdin.close()
            self._supervisor = None
        if self._temporary:
            shutil.rmtree(self.data_dir, ignore_errors=True)

    @property
    def bootstrap_servers(self) -> str:
        """`host:port,...`: the first listener of every broker."""
        return str(self._document["bootstrap_servers"])

    @property
    def zookeeper_connect(self) -> str:
        """`host:port[,...][/chroot]` of ZooKeeper."""
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
    def faults(self) -> Faults:
        """The fault rules; brokers accept them only with `bridgehead.faults.allow=true`."""
        return Faults(self._client)

    @property
    def asynchronous(self) -> AsyncCluster:
        """The same cluster with coroutines, which do not stop the event loop of a test."""
        return AsyncCluster(self)

    @property
    def brokers(self) -> dict[int, Broker]:
        """Every broker by its id, with its current pid."""
        status = self._client.status()
        return {
            broker["id"]: Broker(
                broker["id"], broker["pid"] or 0, broker["listeners"], broker["metrics_url"] or ""
            )
            for broker in status["brokers"]
        }

    def bootstrap_server(self, broker_id: int, listener: str | None = None) -> str:
        """Return `host:port` of one of a broker's listeners.

        This is the listener with the name `listener`. If `listener` is None, it is the first
        listener.
        """
        for broker in self._document["brokers"]:
            if broker["id"] == broker_id:
                listeners: dict[str, str] = broker["listeners"]
                return listeners[listener] if listener else next(iter(listeners.values()))
        raise ClusterError(f"There is no broker {broker_id} in this cluster.")

    def status(self) -> dict[str, Any]:
        """Return the document that `bridgehead status --json` prints."""
        return self._client.status()

    def controller_id(self) -> int | None:
        """Return the active controller's id if every broker that answers names it, else None."""
        controller_id = self._client.controller()["controller_id"]
        return None if controller_id is None else int(controller_id)

    def wait_for_controller(self, *, timeout_s: float = 30.0, other_than: int | None = None) -> int:
        """Block until a controller is active and every broker that answers names it.

        The broker `other_than` does not count as a controller.

        Raises:
            ClusterError: this took longer than `timeout_s`.
        """
        response = self._client.wait_for_controller(other_than=other_than, timeout_s=timeout_s)
        return int(response["controller_id"])

    def kill_controller(self) -> int:
        """Kill the controller's process (SIGKILL); return the broker's id."""
        return int(self._client.kill_controller()["id"])

    def freeze_controller(self, seconds: float) -> int:
        """Freeze the controller's process (SIGSTOP) for `seconds`; return immediately."""
        return int(self._client.freeze_controller(seconds)["id"])

    def expire_controller(self) -> int:
        """Expire the controller's ZooKeeper session; return the broker's id."""
        return int(self._client.expire_controller()["id"])

    def move_controller(self, broker_id: int) -> None:
        """Make a broker the controller; return when every broker knows the new controller."""
        self._client.move_controller(broker_id)

    def upgrade(self, say: Callable[[str], None] = lambda _: None) -> int:
        """Upgrade to forwarding, like `bridgehead upgrade`; return the number of restarts.

        The call passes a sentence to `say` for each step.
        """
        return upgrade(self._client.upgrade_next, say)

    def heal(self) -> None:
        """Undo faults: start and resume processes, and remove fault rules.

        If the cluster was created with `controller`, that broker becomes the controller again. The
        call returns when every broker serves and knows all others. After the controller was killed,
        this may take as long as the ZooKeeper session timeout.

        Raises:
            ClusterError: the brokers do not serve in time.
        """
        self._client.heal()

    def reset(self) -> None:
        """Make the cluster like new: heal it, and remove what clients have written.

        This removes all topics, dynamic broker configs and client quotas. Of the SCRAM users and
        ACLs, it removes those that are not in the cluster's settings.

        Raises:
            ClusterError: the brokers do not serve in time, or the cluster cannot be reset, for
                example after an upgrade. Start a new cluster in this case.
        """
        self._client.reset()

    def start_node(self, broker_id: int) -> None:
        """Start a stopped broker; return when it serves."""
        self._client.start_node(broker_id)

    def stop_node(self, broker_id: int) -> None:
        """Stop a broker (SIGTERM)."""
        self._client.stop_node(broker_id)

    def kill_node(self, broker_id: int) -> None:
        """Kill a broker (SIGKILL)."""
        self._client.kill_node(broker_id)


def _coroutine(
    method: Callable[Concatenate[Cluster, P], T],
) -> Callable[Concatenate[AsyncCluster, P], Coroutine[Any, Any, T]]:
    """Turn a method of `Cluster` into a coroutine method."""

    @functools.wraps(method)
    async def call(self: AsyncCluster, /, *args: P.args, **kwargs: P.kwargs) -> T:
        return await asyncio.to_thread(method, self.cluster, *args, **kwargs)

    return call


class AsyncCluster:
    """The methods of a running `Cluster` as coroutines, for tests with asyncio.

    A blocking method stops the event loop, and with it the client under test. Here it runs in a
    thread.

    cluster = bridgehead_cluster.asynchronous
    killed = await cluster.kill_controller()
    await cluster.wait_for_controller(other_than=killed)
    """

    def __init__(self, cluster: Cluster) -> None:
        self.cluster = cluster

    @property
    def bootstrap_servers(self) -> str:
        """`host:port,...`: the first listener of every broker."""
        return self.cluster.bootstrap_servers

    async def brokers(self) -> dict[int, Broker]:
        """Return every broker by its id, with its current pid."""
        return await asyncio.to_thread(lambda: self.cluster.brokers)

    status = _coroutine(Cluster.status)
    controller_id = _coroutine(Cluster.controller_id)
    wait_for_controller = _coroutine(Cluster.wait_for_controller)
    kill_controller = _coroutine(Cluster.kill_controller)
    freeze_controller = _coroutine(Cluster.freeze_controller)
    expire_controller = _coroutine(Cluster.expire_controller)
    move_controller = _coroutine(Cluster.move_controller)
    start_node = _coroutine(Cluster.start_node)
    stop_node = _coroutine(Cluster.stop_node)
    kill_node = _coroutine(Cluster.kill_node)
    heal = _coroutine(Cluster.heal)
    reset = _coroutine(Cluster.reset)


def _with_policies(
    properties: Mapping[str, str], policies: Sequence[type[Any]]
) -> tuple[dict[str, str], list[Path]]:
    if not policies:
        return dict(properties), []
    from bridgehead.cluster.policy_classes import policy_properties

    named, folders = policy_properties(policies)
    return {**properties, **named}, folders


def _with_security(
    properties: dict[str, str],
    listeners: Mapping[str, Any] | None,
    users: Mapping[str, Any] | None,
    acls: Sequence[Mapping[str, Any]] | None,
) -> tuple[dict[str, str], AccessPlan]:
    if listeners is None and users is None and acls is None:
        return properties, AccessPlan()
    from bridgehead.cluster.cluster_file import read_sections  # imports pydantic and YAML

    sections = read_sections({"listeners": listeners or {}, "users": users or {}, "acls": acls})
    merged = sections.merge_into(properties)
    return merged, sections.access(merged)
