"""What one cluster is asked to be: a value that travels from the command line to the supervisor.

Read first: `ClusterSettings` is what was asked (`cluster_file` reads it from options and files);
`plan.plan_nodes` makes of it what each node gets.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from bridgehead.cluster.errors import ClusterError
from bridgehead.cluster.set_up_plan import SetUp


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class RunSettings:
    """What a run is for; the judge reads it in run.json (docs/evidence.md)."""

    scenario: str | None = None
    """Its name, where things are broken on purpose: then the judge asks whether they bit."""
    seed: int | None = None
    expected: tuple[str, ...] | None = None
    """Ids of the properties that decide; None: all that the run gives occasion to judge."""
    operations_min: int = 0
    """How many operations must succeed before and after the faults of a scenario."""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class ClusterSettings:
    """One cluster. `base_port` None with `ports_auto` False means the usual port, 9092."""

    data_dir: Path
    brokers: int = 3
    base_port: int | None = None
    ports_auto: bool = False
    controller: int | None = None
    zookeeper_connect: str | None = None
    """An external ZooKeeper, `HOST:PORT[,HOST:PORT]...[/chroot]`; None: the embedded one."""
    zookeeper_members: int = 1
    zookeeper_heap_mib: int = 1024
    properties: dict[str, str] = dataclasses.field(default_factory=dict)
    node_properties: dict[int, dict[str, str]] = dataclasses.field(default_factory=dict)
    run: RunSettings = dataclasses.field(default_factory=RunSettings)
    keep_evidence: bool = True
    """Dump and seal at the end; False where the folder is thrown away."""
    set_up: SetUp = dataclasses.field(default_factory=SetUp)
    """Users, ACLs and certificates of the cluster's file."""
    node_command: tuple[str, ...] = ()
    """What starts a node instead of `python -m node`; for tests of supervision."""


def settings_to_json(settings: ClusterSettings) -> dict[str, Any]:
    """A JSON object that `settings_from_json` reads back."""
    result = dataclasses.asdict(settings)
    result["data_dir"] = str(settings.data_dir)
    return result


def settings_from_json(document: Mapping[str, Any]) -> ClusterSettings:
    """The settings that `settings_to_json` (or `Cluster`) wrote."""
    values = dict(document)
    values["data_dir"] = Path(values["data_dir"])
    per_node = values.get("node_properties", {})
    values["node_properties"] = {int(node): dict(given) for node, given in per_node.items()}
    values["set_up"] = SetUp.from_json(values.get("set_up", {}))
    values["node_command"] = tuple(values.get("node_command", ()))
    run = dict(values.get("run", {}))
    if run.get("expected") is not None:
        run["expected"] = tuple(run["expected"])
    values["run"] = RunSettings(**run)
    return ClusterSettings(**values)


def check_settings(settings: ClusterSettings) -> None:
    """Refuses what no cluster can be.

    Raises:
        ClusterError: a node is named that the cluster does not have.
    """
    if settings.brokers < 1:
        raise ClusterError("A cluster needs at least one broker: --brokers 1 or more.")
    named = set(settings.node_properties)
    if settings.controller is not None:
        named.add(settings.controller)
    unknown = sorted(named - set(range(1, settings.brokers + 1)))
    if unknown:
        raise ClusterError(
            f"Broker {unknown[0]} is named, but the brokers of this cluster are 1 to "
            f"{settings.brokers}."
        )


def parse_overrides(
    overrides: Sequence[str],
) -> tuple[dict[str, str], dict[int, dict[str, str]]]:
    """`[ID:]key=value` each: those for every broker, and those for one, by its id.

    Raises:
        ClusterError: an override is not of that form.
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
        if colon and node.strip().isdigit():
            per_node.setdefault(int(node), {})[key.strip()] = value.strip()
        else:
            shared[key.strip()] = value.strip()
    return shared, per_node
