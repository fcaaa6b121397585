"""The settings of one cluster, sent from the command to the supervisor.

`cluster_file` reads them from options and files; `node_plan.plan_nodes` derives each node's
properties.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from bridgehead.cluster.access_plan import AccessPlan
from bridgehead.cluster.errors import ClusterError

# Prefixes of the properties for access to ZooKeeper.
ZOOKEEPER_ACCESS: Final = ("bridgehead.zookeeper.", "zookeeper.ssl.", "zookeeper.clientCnxnSocket")

_HOST: Final = re.compile(r"[A-Za-z0-9._-]{1,253}|\[[0-9A-Fa-f:.]+\]")
_ADDRESS: Final = re.compile(rf"({_HOST.pattern}):(\d{{1,5}})")


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class RunSettings:
    """A run's scenario and expectations; the judge reads them in run.json (docs/evidence.md)."""

    scenario: str | None = None
    """The scenario's name if faults are injected. The judge then checks that they had an effect."""
    seed: int | None = None
    expected: tuple[str, ...] | None = None
    """Ids of the properties that decide the verdict (docs/properties.md); None: all that apply."""
    operations_min: int = 0
    """How many operations must succeed before the first fault, and again after the last one."""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class ControlSettings:
    """The address of the control API (docs/control-api.md). Port 0: a free port."""

    host: str
    port: int
    token: str | None = dataclasses.field(default=None, repr=False)
    """What each request must contain; None: a random token, in the file control.token."""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class ClusterSettings:
    """One cluster. `base_port` defaults to the first port of `listeners`, or else to 9092."""

    data_dir: Path
    brokers: int = 3
    base_port: int | None = None
    ports_auto: bool = False
    controller: int | None = None
    zookeeper_connect: str | None = None
    """An external ZooKeeper, `HOST:PORT[,HOST:PORT]...[/chroot]`; None: the embedded one."""
    adopt: bool | None = None
    """Whether the external ZooKeeper may have another cluster's metadata. None: do not look."""
    copied_zookeeper: str | None = None
    """A ZooKeeper whose metadata is copied into a new embedded one; it is only read."""
    zookeeper_members: int = 1
    zookeeper_heap_mib: int = 1024
    properties: dict[str, str] = dataclasses.field(default_factory=dict)
    node_properties: dict[int, dict[str, str]] = dataclasses.field(default_factory=dict)
    run: RunSettings = dataclasses.field(default_factory=RunSettings)
    keep_evidence: bool = True
    """Whether to dump ZooKeeper and seal the evidence when the cluster stops.

    False for a temporary folder.
    """
    seal_key: Path | None = None
    """The file of the key that signs the run's manifest."""
    access: AccessPlan = dataclasses.field(default_factory=AccessPlan)
    """The users, ACLs and certificates to create."""
    stop_with_pid: int | None = None
    """The cluster stops when this process exits."""
    ttl_s: float | None = None
    """The cluster stops this many seconds after its start."""
    control: ControlSettings | None = None
    """None: no control API; the control socket works all the same."""
    advertised: tuple[str, ...] = ()
    """`host:port` that each broker advertises for its first listener, or one host for all; empty:
    derived from the listener."""
    advertised_late: bool = False
    """Whether the brokers start only after the control API has received their addresses."""
    node_command: tuple[str, ...] = ()
    """Replaces `python -m node`, in tests."""


def settings_to_json(settings: ClusterSettings) -> dict[str, Any]:
    """Return a JSON object for `settings_from_json`."""
    result = dataclasses.asdict(settings)
    result["data_dir"] = str(settings.data_dir)
    result["seal_key"] = None if settings.seal_key is None else str(settings.seal_key.absolute())
    return result


def settings_from_json(document: Mapping[str, Any]) -> ClusterSettings:
    """Return the settings that `settings_to_json` wrote."""
    values = dict(document)
    values["data_dir"] = Path(values["data_dir"])
    if values.get("seal_key") is not None:
        values["seal_key"] = Path(values["seal_key"])
    per_node = values.get("node_properties", {})
    values["node_properties"] = {
        int(node): dict(properties) for node, properties in per_node.items()
    }
    values["access"] = AccessPlan.from_json(values.get("access", {}))
    values["node_command"] = tuple(values.get("node_command", ()))
    if values.get("control") is not None:
        values["control"] = ControlSettings(**values["control"])
    values["advertised"] = tuple(values.get("advertised", ()))
    run = dict(values.get("run", {}))
    if run.get("expected") is not None:
        run["expected"] = tuple(run["expected"])
    values["run"] = RunSettings(**run)
    return ClusterSettings(**values)


def check_settings(settings: ClusterSettings) -> None:
    """Check the settings.

    Raises:
        ClusterError: there is no broker, the settings name a broker that does not exist, the
            properties of a broker set its id, or a key is given for evidence that is not kept.
    """
    if settings.seal_key is not None and not settings.keep_evidence:
        raise ClusterError("seal_key needs a data_dir: a temporary folder is never sealed.")
    access = sorted(n for n in settings.properties if n.startswith(ZOOKEEPER_ACCESS))
    if settings.copied_zookeeper is not None and access:
        raise ClusterError(
            f"--read-only reads a ZooKeeper without TLS and credentials: remove `{access[0]}`."
        )
    if settings.brokers < 1:
        raise ClusterError("A cluster needs at least one broker: --brokers 1 or more.")
    if settings.advertised:
        check_addresses(settings.advertised, settings.brokers)
    if settings.advertised_late and settings.control is None:
        raise ClusterError("Late addresses arrive at the control API: give --control, too.")
    named = set(settings.node_properties)
    if settings.controller is not None:
        named.add(settings.controller)
    unknown = sorted(named - set(range(1, settings.brokers + 1)))
    if unknown:
        raise ClusterError(
            f"There is no broker {unknown[0]}: the brokers of this cluster are 1 to "
            f"{settings.brokers}."
        )
    for node, node_properties in settings.node_properties.items():
        if "broker.id" in node_properties:
            raise ClusterError(
                f"The properties of broker {node} cannot set `broker.id`: "
                f"{CHOSEN_BY_UP['broker.id']}."
            )


def check_addresses(addresses: Sequence[str], brokers: int) -> None:
    """Check that there is one `host:port` for each broker, or one host for all of them.

    Raises:
        ClusterError: the number is wrong, or an address is malformed.
    """
    if len(addresses) == 1 and _HOST.fullmatch(addresses[0]):
        return
    if len(addresses) != brokers:
        raise ClusterError(
            f"{brokers} brokers advertise {brokers} addresses, HOST:PORT of each, not "
            f"{len(addresses)}."
        )
    for address in addresses:
        match = _ADDRESS.fullmatch(address)
        if match is None or not 0 < int(match[2]) <= 65535:
            raise ClusterError(f"{address!r} is not an address that clients can use: HOST:PORT.")


# Every server.properties has these, so `up` ignores them there. With --override, and for one broker
# in cluster.yaml, they are errors. A program may give one broker another `zookeeper.connect`, for a
# proxy whose connections it breaks.
CHOSEN_BY_UP: Final[Mapping[str, str]] = {
    "broker.id": "the brokers have the ids 1, 2, 3, ...; --brokers sets their number",
    "zookeeper.connect": "use --zookeeper HOST:PORT/chroot",
}


def parse_overrides(
    overrides: Sequence[str],
) -> tuple[dict[str, str], dict[int, dict[str, str]]]:
    """Parse `[ID:]key=value`; return the properties of all brokers, and of single ones by id.

    Raises:
        ClusterError: an override has another form, or its property cannot be set.
    """
    shared: dict[str, str] = {}
    per_node: dict[int, dict[str, str]] = {}
    for override in overrides:
        key, equals, value = override.partition("=")
        node, colon, name = key.partition(":")
        if colon and node.strip().isdigit():
            key = name
        if not equals or not key.strip():
            raise ClusterError(f"--override {override!r} is not of the form [ID:]key=value.")
        if (advice := CHOSEN_BY_UP.get(key.strip())) is not None:
            raise ClusterError(f"--override cannot set `{key.strip()}`: {advice}.")
        if colon and node.strip().isdigit():
            per_node.setdefault(int(node), {})[key.strip()] = value.strip()
        else:
            shared[key.strip()] = value.strip()
    return shared, per_node
