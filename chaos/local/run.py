"""Runs one scenario on real processes, and judges it.

1. Start the cluster and the clients.
2. For each fault: wait for its moment, inject it, hold it, heal it.
3. Let the clients work again, and stop them.
4. Compare the state that brokers report with the clients' results.
5. Stop the cluster, and judge the sealed evidence.
"""

from __future__ import annotations

import asyncio
import random
import time
import traceback
from pathlib import Path

from bridgehead.application import module_command
from bridgehead.cluster import ClientHistory, Cluster, ClusterError, RunSettings
from bridgehead.cluster.event_lines import EventLines
from chaos.clocked_node import libfaketime, set_clock
from chaos.judging import judge_run, operations_min
from chaos.local.network import ProxiedNetwork
from chaos.local.target import LocalTarget, clocks_of, failpoints_of
from chaos.player import NoProgressError, Player, Say
from chaos.result import Result
from chaos.scenario import LOCAL, Scenario
from chaos.workload import Place
from judge.verdicts import Verdict


async def run(scenario: Scenario, seed: int, folder: Path, say: Say) -> Result:
    """Run a scenario with a seed; keep its evidence in `folder`, which must not exist."""
    scenario = scenario.of_seed(seed)
    result = Result(scenario=scenario.name, seed=seed, tier=LOCAL, folder=str(folder))
    began_s = time.monotonic()
    broken_off: list[str] = []
    try:
        try:
            await _play(scenario, seed, folder, say, result)
        except (NoProgressError, ClusterError) as error:
            broken_off.append(str(error))
        if (folder / "evidence").is_dir():
            judge_run(scenario, result, folder)
    except Exception:  # The results of all runs must still be written.
        traceback.print_exc()
        result.verdict = Verdict.CRASHED
        result.wrong.append("the run crashed: its traceback is above")
    if broken_off:
        result.verdict = Verdict.HANG
        result.wrong = broken_off + result.wrong
    result.seconds = time.monotonic() - began_s
    return result


async def _play(scenario: Scenario, seed: int, folder: Path, say: Say, result: Result) -> None:
    members = scenario.topology.zookeeper_members
    brokers = tuple(range(1, scenario.topology.brokers + 1))
    network = None
    node_properties = {
        node: dict(changed_properties)
        for node, changed_properties in scenario.workload.node_properties.items()
    }
    if any(step.fault.breaks_links for step in scenario.steps):
        network = ProxiedNetwork(folder, brokers, tuple(range(1, members + 1)))
        for broker, changed_properties in (await network.start()).items():
            node_properties[broker] = {**node_properties.get(broker, {}), **changed_properties}
    cluster = _cluster(scenario, seed, folder, node_properties)
    say("starting the cluster")
    try:
        await asyncio.to_thread(cluster.__enter__)
        lines = EventLines(
            cluster.evidence_dir, cluster.evidence_dir.name.removeprefix("run="), "harness", "chaos"
        )
        target = LocalTarget(cluster, members, network, lines)
        with ClientHistory(cluster.evidence_dir, scenario.workload.name) as history:
            place = Place(
                address=cluster.bootstrap_server,
                brokers=brokers,
                source=random.Random(seed),
                history=history,
            )
            player = Player(scenario, random.Random(f"faults {seed}"), target, say)
            try:
                result.wrong += await player.play(place)
            finally:
                result.acknowledged = place.progress.acknowledged
                lines.close("the scenario is over")
        say("stopping the cluster")
    finally:
        await asyncio.to_thread(cluster.stop)
        if network is not None:
            network.stop()


def _cluster(
    scenario: Scenario, seed: int, folder: Path, node_properties: dict[int, dict[str, str]]
) -> Cluster:
    topology = scenario.topology
    return Cluster(
        brokers=topology.brokers,
        data_dir=folder,
        properties={
            "zookeeper.session.timeout.ms": str(topology.session_timeout_ms),
            "auto.create.topics.enable": "false",
            **scenario.workload.properties,
            **topology.properties,
        },
        node_properties=node_properties,
        zookeeper_members=topology.zookeeper_members,
        node_command=_node_command(scenario, folder),
        run=RunSettings(
            scenario=scenario.name if scenario.steps else None,
            seed=seed,
            operations_min=operations_min(scenario),
        ),
    )


def _node_command(scenario: Scenario, folder: Path) -> list[str]:
    """Return the command that starts the nodes; an empty list stands for the usual one.

    Raises:
        ClusterError: libfaketime is needed and missing.
    """
    bugs = scenario.topology.seeded_bugs
    if any(step.fault.has_failpoint for step in scenario.steps):
        failpoints = failpoints_of(folder)
        failpoints.mkdir(parents=True)
        options = ("--mutants", ",".join(bugs), "--failpoints", str(failpoints))
        return module_command("chaos.mutant_node", *options)
    if bugs:
        return module_command("chaos.mutant_node", "--mutants", ",".join(bugs))
    if not any(step.fault.moves_clocks for step in scenario.steps):
        return []
    library = libfaketime()
    if library is None:
        raise ClusterError("libfaketime is missing: install it (apt-get install faketime).")
    clocks = clocks_of(folder)
    clocks.mkdir(parents=True)
    for broker in range(1, scenario.topology.brokers + 1):
        set_clock(clocks, broker, 0)
    options = ("--clocks", str(clocks), "--libfaketime", str(library))
    return module_command("chaos.clocked_node", *options)
