"""Plans the properties and ports of each node: one `server.properties` serves every broker.

Names, protocols and security of `listeners` come from the user's file. Ports are free ports, or
they are numbered from the base port: the first listeners of all brokers, then the second listeners
of all brokers, and so on.
`broker.id` counts from 1 and `broker.rack` defaults to `rack-ID`. Properties that the user sets for
a single node are used unchanged.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Mapping, Sequence
from pathlib import Path

from bridgehead.cluster.broker_certificates import channel_folder, files_of, makes_certificates
from bridgehead.cluster.errors import ClusterError
from bridgehead.cluster.ports import LOOPBACK, Ports
from bridgehead.cluster.settings import ClusterSettings

DEFAULT_BASE_PORT = 9092
DEFAULT_METRICS_PORT = 9404
DEFAULT_ZOOKEEPER_PORT = 2181
_LISTENER_PATTERN = re.compile(r"([A-Za-z0-9_-]+)://(\[[^\]]*\]|[^:/\[\]]*):(\d+)")


@dataclasses.dataclass(frozen=True, slots=True)
class ListenerAddress:
    """One entry of `listeners`: `NAME://host:port`."""

    name: str
    host: str
    port: int

    def __str__(self) -> str:
        """Return Kafka's notation."""
        return f"{self.name}://{self.host}:{self.port}"


@dataclasses.dataclass(frozen=True, slots=True)
class NodePlan:
    """One node: its id and the contents of its .properties file."""

    id: int
    properties: dict[str, str]


def parse_listeners(value: str, key: str = "listeners") -> tuple[ListenerAddress, ...]:
    """Parse Kafka's `listeners`: `NAME://host:port,...`.

    Raises:
        ClusterError: an entry has another form, or a name occurs twice.
    """
    listeners = []
    for entry in filter(None, (part.strip() for part in value.split(","))):
        match = _LISTENER_PATTERN.fullmatch(entry)
        if match is None:
            raise ClusterError(f"`{key}`: {entry!r} is not of the form NAME://host:port.")
        listeners.append(ListenerAddress(match[1].upper(), match[2], int(match[3])))
    names = [listener.name for listener in listeners]
    if not listeners or len(set(names)) < len(names):
        raise ClusterError(
            f"`{key}`: {value!r} must name at least one listener, and each one only once."
        )
    return tuple(listeners)


def plan_nodes(
    settings: ClusterSettings,
    ports: Ports,
    *,
    zookeeper_connect: str,
    run_id: str,
    evidence: Path | None = None,
) -> tuple[NodePlan, ...]:
    """Return the properties of every node, with all ports. `evidence` is the run's folder.

    Raises:
        ClusterError: a required port is in use, or `listeners` is malformed.
    """
    certificates = channel_folder(settings)
    templates = parse_listeners(settings.properties.get("listeners", "PLAINTEXT://:0"))
    advertised = _advertised_hosts(settings)
    base_port = settings.base_port or templates[0].port or DEFAULT_BASE_PORT
    folder = evidence or settings.data_dir.resolve() / "evidence" / f"run={run_id}"
    planned_listeners: list[list[ListenerAddress]] = [[] for _ in range(settings.brokers)]
    for position, listener in enumerate(templates):
        for index in range(settings.brokers):
            host = listener.host or LOOPBACK
            counted = base_port + position * settings.brokers + index
            if "listeners" in settings.node_properties.get(index + 1, {}):
                continue
            if counted > 65535:
                raise ClusterError(f"Port {counted} is above 65535: choose a lower --base-port.")
            port = ports.choose(host) if settings.ports_auto else ports.demand(host, counted)
            planned_listeners[index].append(dataclasses.replace(listener, host=host, port=port))
    return tuple(
        NodePlan(
            index + 1,
            {
                **settings.properties,
                **_own_properties(settings, index, planned_listeners[index], advertised, ports),
                **(_certificates(certificates, index + 1) if makes_certificates(settings) else {}),
                "zookeeper.connect": zookeeper_connect,
                "bridgehead.run.id": run_id,
                "bridgehead.evidence.dir": str(folder / f"node={index + 1}"),
                **settings.node_properties.get(index + 1, {}),
            },
        )
        for index in range(settings.brokers)
    )


def with_advertised(plans: Sequence[NodePlan], addresses: Sequence[str]) -> tuple[NodePlan, ...]:
    """Return the plans with these advertised addresses for the first listener of each broker.

    `addresses` are `host:port` of each broker, or one host for all; the ports are then the
    listeners' own.
    """
    changed = []
    for number, plan in enumerate(plans):
        bound = parse_listeners(plan.properties["listeners"])
        address = addresses[number % len(addresses)]
        if len(addresses) == 1 and not re.search(r":\d+$", address):
            address = f"{address}:{bound[0].port}"
        advertised = plan.properties.get("advertised.listeners", "")
        others = [
            str(listener)
            for listener in (parse_listeners(advertised) if advertised else bound)
            if listener.name != bound[0].name
        ]
        value = ",".join([f"{bound[0].name}://{address}", *others])
        properties = {**plan.properties, "advertised.listeners": value}
        changed.append(NodePlan(plan.id, properties))
    return tuple(changed)


def advertised_listeners(plan: NodePlan, bound: Mapping[str, str]) -> dict[str, str]:
    """Return the address of each listener for clients: the advertised one if there is one.

    `bound` has the `host:port` of each listener.
    """
    value = plan.properties.get("advertised.listeners", "")
    advertised = {listener.name: listener for listener in parse_listeners(value)} if value else {}
    result = {}
    for name, address in bound.items():
        host, _, port = address.rpartition(":")
        shown = advertised.get(name)
        result[name] = address if shown is None else f"{shown.host or host}:{shown.port or port}"
    return result


def _certificates(folder: Path, broker_id: int) -> dict[str, str]:
    files = files_of(folder, broker_id)
    return {
        "bridgehead.grpc.certificate": str(files.certificate),
        "bridgehead.grpc.key": str(files.key),
        "bridgehead.grpc.authority": str(files.authority),
    }


def _own_properties(
    settings: ClusterSettings,
    index: int,
    listeners: list[ListenerAddress],
    advertised: dict[str, str],
    ports: Ports,
) -> dict[str, str]:
    node = index + 1
    metrics_port = (
        ports.choose()
        if settings.ports_auto
        else ports.prefer(LOOPBACK, DEFAULT_METRICS_PORT + index)
    )
    node_properties = {
        "broker.id": str(node),
        "broker.rack": settings.properties.get("broker.rack", f"rack-{node}"),
        "zookeeper.session.timeout.ms": settings.properties.get(
            "zookeeper.session.timeout.ms", "6000"
        ),
        "bridgehead.grpc.listener": f"{LOOPBACK}:0",
        "bridgehead.metrics.listener": f"{LOOPBACK}:{metrics_port}",
    }
    node_properties |= _log_directories(settings, node)
    if settings.controller is not None:
        node_properties["bridgehead.controller.pinned"] = str(settings.controller)
    if listeners:
        node_properties["listeners"] = ",".join(str(listener) for listener in listeners)
        node_properties |= _advertised(settings, listeners, advertised)
    else:  # This node sets its own listeners: the shared advertised.listeners do not apply to it.
        node_properties |= _advertised(
            settings, parse_listeners(settings.node_properties[node]["listeners"]), {}
        )
    return node_properties


def _log_directories(settings: ClusterSettings, node: int) -> dict[str, str]:
    """Return the directories of `log.dirs`, moved into the node's folder.

    Brokers cannot share a directory, and a directory of a real Kafka must not be changed.
    """
    folder, moved = settings.data_dir.resolve() / "nodes" / str(node), {}
    for name in ("log.dirs", "log.dir"):
        folders = [part.strip() for part in settings.properties.get(name, "").split(",")]
        if any(folders):
            moved[name] = ",".join(str(folder / path.lstrip("/")) for path in folders if path)
    return moved


def _advertised(
    settings: ClusterSettings, listeners: Sequence[ListenerAddress], hosts: Mapping[str, str]
) -> dict[str, str]:
    """Return advertised.listeners; {} if the default, which is `listeners`, is right."""
    reachable = [
        dataclasses.replace(listener, host=_reachable(listener, hosts)) for listener in listeners
    ]
    if reachable == list(listeners) and "advertised.listeners" not in settings.properties:
        return {}
    return {"advertised.listeners": ",".join(map(str, reachable))}


def _advertised_hosts(settings: ClusterSettings) -> dict[str, str]:
    value = settings.properties.get("advertised.listeners")
    if not value:
        return {}
    return {entry.name: entry.host for entry in parse_listeners(value, "advertised.listeners")}


def _reachable(listener: ListenerAddress, advertised: Mapping[str, str]) -> str:
    host = advertised.get(listener.name) or listener.host
    return LOOPBACK if host in ("0.0.0.0", "[::]", "") else host  # noqa: S104 - never bound
