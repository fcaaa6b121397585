"""The processes of one rehearsal: ZooKeeper, our nodes, Kafka's controllers, Kafka's brokers.

Their ports, ids and phase are in `rehearsal.json`, so that a later command starts the same
rehearsal again. Every process dies with this one.
"""

from __future__ import annotations

import contextlib
import dataclasses
import json
import os
import secrets
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import psutil

from bridgehead.cluster.data_directory import read_json, write_json
from bridgehead.cluster.errors import ClusterError
from bridgehead.cluster.node_plan import NodePlan
from bridgehead.cluster.node_process import NodeProcess
from bridgehead.cluster.ports import LOOPBACK, Ports
from bridgehead.cluster.zookeeper import EmbeddedZooKeeper, stop_stray_zookeeper
from rehearse.kraft.jars import BROKER_HEAP_MIB, CONTROLLER_HEAP_MIB, find_jars, find_kafkas_java
from rehearse.kraft.process import KafkaProcess
from rehearse.kraft.storage import format_storage
from rehearse.links import Link
from rehearse.load import USER
from rehearse.znodes import ZnodeTree

FILE: Final = "rehearsal.json"
_FOLDERS: Final = ("zookeeper", "nodes", "controllers", "brokers", "rollback", "evidence")
_FILES: Final = (FILE, "state.json", "report.json", "report.html")
_CONTROLLER_LISTENER: Final = "CONTROLLER"
_FIRST_CONTROLLER_ID: Final = 3000
_DEFAULT_LISTENER: Final = "PLAINTEXT"
# Delegation tokens are for authenticated clients only, so the load has a listener of its own.
LOAD_LISTENER: Final = "REHEARSAL"
_ID_DIGITS_MAX: Final = 10
_SUPER_USERS: Final = f"User:ANONYMOUS;User:{USER}"


@dataclasses.dataclass(frozen=True, slots=True)
class BrokerPlan:
    """A broker that is impersonated: its id, its rack and the names of its listeners."""

    id: int
    rack: str | None
    listeners: tuple[str, ...]


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What a rehearsal is made of. It does not change from the first start on."""

    kafka: str
    level: str
    """`inter.broker.protocol.version` of the brokers, and `metadata.version` of the controller."""
    cluster_id: str
    brokers: tuple[BrokerPlan, ...]
    controllers: tuple[int, ...]
    zookeeper_port: int
    ports: Mapping[str, int]
    """The port of each listener, by `ID/NAME`."""
    token_secret: str = dataclasses.field(repr=False)
    load_password: str = dataclasses.field(repr=False)


# The names of the relays, and of their ports in a plan.


def _to_controller(broker_id: int | None, number: int) -> str:
    return f"{broker_id} to {number}"


def _to_zookeeper(number: int) -> str:
    return f"{number} to ZooKeeper"


def _links_of(plan: Plan) -> dict[str, Link]:
    links = {}
    for number in plan.controllers:
        name = _to_controller(plan.brokers[0].id, number)
        links[name] = Link(plan.ports[name], plan.ports[f"{number}/{_CONTROLLER_LISTENER}"])
        name = _to_zookeeper(number)
        links[name] = Link(plan.ports[name], plan.zookeeper_port)
    return links


def _clear(folder: Path) -> None:
    """Delete an earlier rehearsal, whose processes ended with their parent."""
    if not folder.exists() or not any(folder.iterdir()):
        return
    if not (folder / FILE).exists():
        raise ClusterError(f"{folder} is not empty: name another folder with --out.")
    stop_stray_zookeeper(folder / "zookeeper")
    for name in (*_FOLDERS, *_FILES):
        path = folder / name
        shutil.rmtree(path) if path.is_dir() else path.unlink(missing_ok=True)


def plan_brokers(tree: ZnodeTree, ids: Sequence[int] = ()) -> tuple[BrokerPlan, ...]:
    """Return the brokers of a cluster: those of `ids`, else the registered ones.

    If no broker is registered, because the cluster was stopped, they are the brokers that have a
    replica.

    Raises:
        ClusterError: there is no broker.
    """
    registered = {
        int(name): _json(tree.data(f"/brokers/ids/{name}"))
        for name in tree.children("/brokers/ids")
        if name.isascii() and name.isdecimal() and len(name) <= _ID_DIGITS_MAX
    }
    chosen = list(ids) or sorted(registered) or sorted(_ids_of_replicas(tree))
    if not chosen:
        raise ClusterError(
            "The cluster has no brokers: name the ids of its brokers with --brokers 1,2,3."
        )
    return tuple(_broker(broker_id, registered.get(broker_id, {})) for broker_id in chosen)


def _broker(broker_id: int, registration: dict[str, Any]) -> BrokerPlan:
    endpoints = registration.get("endpoints")
    names = [
        str(endpoint).partition("://")[0]
        for endpoint in (endpoints if isinstance(endpoints, list) else ())
    ]
    rack = registration.get("rack")
    return BrokerPlan(
        broker_id, rack if isinstance(rack, str) else None, tuple(names) or (_DEFAULT_LISTENER,)
    )


def _ids_of_replicas(tree: ZnodeTree) -> set[int]:
    ids: set[int] = set()
    for name in tree.children("/brokers/topics"):
        partitions = _json(tree.data(f"/brokers/topics/{name}")).get("partitions")
        for replicas in (partitions if isinstance(partitions, dict) else {}).values():
            if isinstance(replicas, list):
                ids |= {replica for replica in replicas if isinstance(replica, int)}
    return ids


def _json(data: bytes | None) -> dict[str, Any]:
    try:
        content = json.loads(data or b"{}")
    except ValueError:
        return {}
    return content if isinstance(content, dict) else {}


def cluster_id_of(tree: ZnodeTree) -> str:
    """Return the id in `/cluster/id`. Raises ClusterError."""
    cluster_id = _json(tree.data("/cluster/id")).get("id")
    if not isinstance(cluster_id, str) or not cluster_id:
        raise ClusterError(
            "/cluster/id is missing or unreadable: this is not the ZooKeeper of a Kafka cluster, "
            "or the chroot is missing (HOST:PORT/chroot)."
        )
    return cluster_id


class Participants:
    """The processes of the rehearsal in one folder."""

    def __init__(
        self,
        folder: Path,
        plan: Plan,
        *,
        node_command: Sequence[str] = (),
        with_links: bool = False,
    ) -> None:
        """`node_command` replaces `python -m node`, in tests.

        `with_links`: the first broker reaches the controllers, and these ZooKeeper, through relays
        that can be cut (`start_links`).
        """
        self.folder = folder
        self.plan = plan
        self._links = _links_of(plan) if with_links else {}
        self.serves_clients = not node_command
        """Whether the brokers answer clients; those of tests do not."""
        self.rss_max_mib: dict[str, int] = {}
        """The most memory that each process was seen to have."""
        java = find_kafkas_java()
        jars = find_jars(plan.kafka)
        self.zookeeper = EmbeddedZooKeeper(
            folder / "zookeeper", (plan.zookeeper_port,), java=java, heap_mib=512
        )
        self.controllers = {
            number: KafkaProcess(
                number,
                folder / "controllers" / str(number),
                java=java,
                jars=jars,
                heap_mib=CONTROLLER_HEAP_MIB,
            )
            for number in plan.controllers
        }
        self.brokers = {
            broker.id: KafkaProcess(
                broker.id,
                folder / "brokers" / str(broker.id),
                java=java,
                jars=jars,
                heap_mib=BROKER_HEAP_MIB,
            )
            for broker in plan.brokers
        }
        self.nodes = {
            broker.id: NodeProcess(
                NodePlan(broker.id, self._node_properties(broker)),
                folder / "nodes" / str(broker.id),
                tuple(node_command),
            )
            for broker in plan.brokers
        }

    @classmethod
    def create(
        cls,
        folder: Path,
        tree: ZnodeTree,
        *,
        kafka: str,
        level: str,
        controllers: int,
        broker_ids: Sequence[int],
        node_command: Sequence[str] = (),
        with_links: bool = False,
    ) -> Participants:
        """Plan a rehearsal of a cluster, and write its file; an earlier one there is deleted.

        Raises:
            ClusterError: the folder has something else, or the cluster has no brokers.
        """
        _clear(folder)
        brokers = plan_brokers(tree, broker_ids)
        taken = {broker.id for broker in brokers}
        ids = [n for n in range(_FIRST_CONTROLLER_ID, 1 << 20) if n not in taken][:controllers]
        ports = Ports()
        names = [
            f"{broker.id}/{name}"
            for broker in brokers
            for name in (*broker.listeners, LOAD_LISTENER)
        ]
        names += [f"{broker.id}/metrics" for broker in brokers]
        names += [f"{number}/{_CONTROLLER_LISTENER}" for number in ids]
        names += [_to_controller(brokers[0].id, number) for number in ids]
        names += [_to_zookeeper(number) for number in ids]
        plan = Plan(
            kafka=kafka,
            level=level,
            cluster_id=cluster_id_of(tree),
            brokers=brokers,
            controllers=tuple(ids),
            zookeeper_port=ports.choose(),
            ports={name: ports.choose() for name in names},
            token_secret=secrets.token_hex(),
            load_password=secrets.token_hex(),
        )
        folder.mkdir(parents=True, exist_ok=True)
        folder.chmod(0o700)  # Kafka logs a credential that it cannot read.
        write_json(folder / FILE, dataclasses.asdict(plan))
        return cls(folder, plan, node_command=node_command, with_links=with_links)

    @classmethod
    def open(cls, folder: Path, *, node_command: Sequence[str] = ()) -> Participants:
        """Return the rehearsal that an earlier command planned. Raises ClusterError."""
        document = read_json(folder / FILE)
        if document is None:
            raise ClusterError(
                f"{folder} has no rehearsal: name the folder of `bridgehead rehearse run --out`."
            )
        brokers = tuple(
            BrokerPlan(broker["id"], broker["rack"], tuple(broker["listeners"]))
            for broker in document.pop("brokers")
        )
        plan = Plan(brokers=brokers, controllers=tuple(document.pop("controllers")), **document)
        stop_stray_zookeeper(folder / "zookeeper")
        return cls(folder, plan, node_command=node_command)

    @property
    def connect(self) -> str:
        """`HOST:PORT` of the rehearsal's ZooKeeper."""
        return self.zookeeper.connect

    @property
    def client_properties(self) -> dict[str, object]:
        """How the load connects: to its listener of every broker, as its own user."""
        return {
            "bootstrap.servers": ",".join(
                f"{LOOPBACK}:{self.plan.ports[f'{broker.id}/{LOAD_LISTENER}']}"
                for broker in self.plan.brokers
            ),
            "security.protocol": "SASL_PLAINTEXT",
            "sasl.mechanism": "PLAIN",
            "sasl.jaas.config": (
                "org.apache.kafka.common.security.plain.PlainLoginModule required "
                f'username="{USER}" password="{self.plan.load_password}";'
            ),
        }

    @property
    def librdkafka_properties(self) -> dict[str, object]:
        """The same for clients with librdkafka."""
        properties = self.client_properties
        del properties["sasl.jaas.config"]
        return {
            **properties,
            "sasl.username": USER,
            "sasl.password": self.plan.load_password,
        }

    async def start_links(self) -> None:
        """Start the relays, if there are any."""
        for link in self._links.values():
            await link.start()

    def links(self, participant: str, controller: int) -> list[Link]:
        """Return what a cut of a participant holds back; `controller` is the active one's id."""
        numbers, broker_id = self.plan.controllers, self.plan.brokers[0].id
        cut = {
            "broker": [_to_controller(broker_id, number) for number in numbers],
            "controller": [_to_zookeeper(controller)],
            "zookeeper": [_to_zookeeper(number) for number in numbers],
        }
        return [self._links[name] for name in cut[participant]]

    def voters(self, of: int | None = None) -> str:
        """Return `controller.quorum.voters` of a broker, or of the controllers."""
        voters = []
        for number in self.plan.controllers:
            link, listener = _to_controller(of, number), f"{number}/{_CONTROLLER_LISTENER}"
            port = self.plan.ports[link if link in self._links else listener]
            voters.append(f"{number}@{LOOPBACK}:{port}")
        return ",".join(voters)

    def start_controller(self, number: int, *, migrating: bool = True) -> None:
        """Start a controller; format its storage before its first start."""
        controller = self.controllers[number]
        format_storage(
            controller.log_dir,
            cluster_id=self.plan.cluster_id,
            node_id=number,
            level=self.plan.level,
        )
        controller.start(self.controller_properties(number, migrating=migrating))

    def start_broker(self, broker_id: int) -> None:
        """Start a broker of Kafka in KRaft mode, in the place of our node."""
        broker = self.brokers[broker_id]
        format_storage(
            broker.log_dir,
            cluster_id=self.plan.cluster_id,
            node_id=broker_id,
            level=self.plan.level,
        )
        broker.start(self.broker_properties(broker_id))

    def controller_properties(self, number: int, *, migrating: bool) -> dict[str, str]:
        """Return a controller's properties; only a migrating one knows ZooKeeper."""
        port = self.plan.ports[f"{number}/{_CONTROLLER_LISTENER}"]
        properties = {
            "process.roles": "controller",
            "node.id": str(number),
            "controller.quorum.voters": self.voters(),
            "controller.listener.names": _CONTROLLER_LISTENER,
            "listeners": f"{_CONTROLLER_LISTENER}://{LOOPBACK}:{port}",
            "listener.security.protocol.map": self._protocols(),
            "inter.broker.listener.name": self.plan.brokers[0].listeners[0],
            "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
            "super.users": _SUPER_USERS,
            "delegation.token.secret.key": self.plan.token_secret,
        }
        if migrating:
            properties["zookeeper.metadata.migration.enable"] = "true"
            link = self._links.get(_to_zookeeper(number))
            properties["zookeeper.connect"] = (
                self.connect if link is None else f"{LOOPBACK}:{link.port}"
            )
        return properties

    def broker_properties(self, broker_id: int) -> dict[str, str]:
        """Return the properties of a Kafka broker in KRaft mode."""
        broker = next(planned for planned in self.plan.brokers if planned.id == broker_id)
        return {
            "process.roles": "broker",
            "node.id": str(broker_id),
            "controller.quorum.voters": self.voters(broker_id),
            "controller.listener.names": _CONTROLLER_LISTENER,
            **self._listeners(broker),
            "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
            "super.users": _SUPER_USERS,
            "delegation.token.secret.key": self.plan.token_secret,
            "num.network.threads": "1",
            "num.io.threads": "2",
            "log.cleaner.dedupe.buffer.size": "8000000",
            "group.initial.rebalance.delay.ms": "0",
        }

    def _node_properties(self, broker: BrokerPlan) -> dict[str, str]:
        return {
            "broker.id": str(broker.id),
            **self._listeners(broker),
            "inter.broker.protocol.version": self.plan.level,
            "zookeeper.connect": self.connect,
            "zookeeper.session.timeout.ms": "6000",
            "zookeeper.metadata.migration.enable": "true",
            "controller.quorum.voters": self.voters(broker.id),
            "controller.listener.names": _CONTROLLER_LISTENER,
            "authorizer.class.name": "kafka.security.authorizer.AclAuthorizer",
            "super.users": _SUPER_USERS,
            "delegation.token.secret.key": self.plan.token_secret,
            "bridgehead.grpc.listener": f"{LOOPBACK}:0",
            "bridgehead.metrics.listener": f"{LOOPBACK}:{self.plan.ports[f'{broker.id}/metrics']}",
        }

    def _listeners(self, broker: BrokerPlan) -> dict[str, str]:
        """Return what our node and the Kafka broker in its place have in common."""
        listeners = ",".join(
            f"{name}://{LOOPBACK}:{self.plan.ports[f'{broker.id}/{name}']}"
            for name in (*broker.listeners, LOAD_LISTENER)
        )
        result = {
            "listeners": listeners,
            "listener.security.protocol.map": self._protocols(),
            "inter.broker.listener.name": broker.listeners[0],
            f"listener.name.{LOAD_LISTENER.lower()}.sasl.enabled.mechanisms": "PLAIN",
            f"listener.name.{LOAD_LISTENER.lower()}.plain.sasl.jaas.config": (
                "org.apache.kafka.common.security.plain.PlainLoginModule required "
                f'user_{USER}="{self.plan.load_password}";'
            ),
            "offsets.topic.replication.factor": str(min(3, len(self.plan.brokers))),
        }
        return result if broker.rack is None else {**result, "broker.rack": broker.rack}

    def _protocols(self) -> str:
        """Map every listener of the cluster to PLAINTEXT: on loopback nothing is encrypted."""
        names = {name for broker in self.plan.brokers for name in broker.listeners}
        mapped = [f"{name}:PLAINTEXT" for name in sorted({*names, _CONTROLLER_LISTENER})]
        return ",".join([*mapped, f"{LOAD_LISTENER}:SASL_PLAINTEXT"])

    def stop(self) -> None:
        """Stop every process: brokers, controllers, ZooKeeper. May be called twice."""
        for link in self._links.values():
            link.mend()
        for broker in self.brokers.values():
            broker.kill()  # the last one would wait for other leaders
        for node in self.nodes.values():
            node.request_stop()
        for node in self.nodes.values():
            node.stop()
        for controller in self.controllers.values():
            controller.request_stop()
        for controller in self.controllers.values():
            controller.stop()
        for link in self._links.values():
            link.stop()
        self.zookeeper.stop()

    def kill(self) -> None:
        """Kill every process (SIGKILL), if nothing of what they have matters any more."""
        for process in (*self.brokers.values(), *self.controllers.values()):
            process.kill()
        for node in self.nodes.values():
            node.kill()
        self.zookeeper.kill()

    def measure(self) -> None:
        """Note the resident memory of each process, and of this one."""
        pids = {"this command": os.getpid(), "ZooKeeper": self.zookeeper.pid()}
        kinds: Sequence[tuple[str, Mapping[int, KafkaProcess | NodeProcess]]] = (
            ("controller", self.controllers),
            ("our broker", self.nodes),
            ("Kafka's broker", self.brokers),
        )
        for kind, processes in kinds:
            pids |= {f"{kind} {number}": process.pid for number, process in processes.items()}
        for name, pid in pids.items():
            if pid is not None:
                with contextlib.suppress(psutil.Error):  # it has ended meanwhile
                    rss_mib = psutil.Process(pid).memory_info().rss >> 20
                    self.rss_max_mib[name] = max(rss_mib, self.rss_max_mib.get(name, 0))
