"""Runs one scenario on real processes, and judges it.

1. Start the cluster and the clients.
2. For each fault: wait for its moment, inject it, hold it, heal it.
3. Let the clients work again, and stop them.
4. Compare what the brokers describe with the clients' results.
5. Stop the cluster, and judge the sealed evidence.
"""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Final

from bridgehead.application import module_command
from bridgehead.cluster import ClientHistory, Cluster, ClusterError, RunSettings
from bridgehead.cluster.event_lines import EventLines
from chaos.clocked_node import libfaketime, set_clock
from chaos.local.network import ProxiedNetwork
from chaos.local.target import LocalTarget, clocks_of
from chaos.result import Result, decide, differences
from chaos.scenario import (
    LOCAL,
    Acknowledged,
    AnotherController,
    Hold,
    Once,
    Scenario,
    Sessions,
    Step,
)
from chaos.workload import Load, Place
from event_log.verdicts import Verdict, worst
from judge.evidence.run_lookup import read_run
from judge.history import History
from judge.verdicts import judge

Say = Callable[[str], None]

_PROGRESS_WITHIN_S: Final = 90.0
_STOPPED_WITHIN_S: Final = 120.0
_POLL_S: Final = 0.02


class NoProgressError(Exception):
    """The clients or the cluster made no progress. The text is one sentence."""


async def run(scenario: Scenario, seed: int, folder: Path, say: Say) -> Result:
    """Run a scenario with a seed; keep its evidence in `folder`, which must not exist."""
    result = Result(scenario=scenario.name, seed=seed, tier=LOCAL, folder=str(folder))
    began_s = time.monotonic()
    broken_off: list[str] = []
    try:
        await _play(scenario, seed, folder, say, result)
    except (NoProgressError, ClusterError) as error:
        broken_off.append(str(error))
    if (folder / "evidence").is_dir():
        _judge(scenario, result, folder)
    if broken_off:
        result.verdict = Verdict.HANG
        result.wrong = broken_off + result.wrong
    result.seconds = time.monotonic() - began_s
    return result


async def _play(scenario: Scenario, seed: int, folder: Path, say: Say, result: Result) -> None:
    members = scenario.topology.zookeeper_members
    brokers = tuple(range(1, scenario.topology.brokers + 1))
    network = None
    node_properties = {each: dict(own) for each, own in scenario.workload.node_properties.items()}
    if any(step.fault.breaks_links for step in scenario.steps):
        network = ProxiedNetwork(folder, brokers, tuple(range(1, members + 1)))
        for broker, own in (await network.start()).items():
            node_properties[broker] = {**node_properties.get(broker, {}), **own}
    cluster = _cluster(scenario, seed, folder, node_properties)
    say("starts")
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
            player = _Player(scenario, random.Random(f"faults {seed}"), target, say)
            try:
                result.wrong += await player.play(scenario.workload.start(place))
            finally:
                result.acknowledged = player.acknowledged
                lines.close("the scenario is over")
        say("stops")
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
            operations_min=_operations_min(scenario),
        ),
    )


def _node_command(scenario: Scenario, folder: Path) -> list[str]:
    """Return the command that starts the nodes; an empty list stands for the usual one.

    Raises:
        ClusterError: libfaketime is needed and missing.
    """
    bugs = scenario.topology.seeded_bugs
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


def _operations_min(scenario: Scenario) -> int:
    """Return how many recorded operations T1 requires; not all successes are recorded."""
    counts = (scenario.after, *(step.after for step in scenario.steps[:1]))
    return max(min(counts) // 4, 1)


class _Player:
    """Injects the faults of a scenario while a load runs."""

    def __init__(
        self, scenario: Scenario, source: random.Random, target: LocalTarget, say: Say
    ) -> None:
        self._scenario = scenario
        self._source = source
        self._target = target
        self._say = say
        self.acknowledged = 0

    async def play(self, load: Load) -> list[str]:
        """Inject all faults; return, in sentences, what the clients found wrong."""
        work = asyncio.create_task(load.run())
        try:
            for step in self._scenario.steps:
                for _ in range(step.times):
                    await self._step(step, load, work)
            await self._wait(load, work, self._scenario.after)
            load.stop()
            done, _ = await asyncio.wait((work,), timeout=_STOPPED_WITHIN_S)
            if not done:
                raise NoProgressError(f"a request took longer than {_STOPPED_WITHIN_S:.0f} s")
            work.result()
            scenario = self._scenario
            if scenario.expects.violates or scenario.topology.seeded_bugs:
                return []  # The judge decides, whatever the clients see.
            self._say("compares what the brokers describe")
            return await load.wrong()
        finally:
            self.acknowledged = load.acknowledged
            work.cancel()

    async def _step(self, step: Step, load: Load, work: asyncio.Task[None]) -> None:
        await self._wait(load, work, step.after + self._source.randrange(step.after // 4 + 1))
        before = await self._target.controller()
        self._say(f"{load.acknowledged} acknowledged: {step.fault.name}, controller {before}")
        async with step.fault.inject(self._target):
            await self._hold(step.hold, before, load, work)
        await self._target.controller()

    async def _hold(self, hold: Hold, before: int, load: Load, work: asyncio.Task[None]) -> None:
        match hold:
            case Sessions(count):
                await asyncio.sleep(count * self._scenario.topology.session_timeout_ms / 1000)
            case AnotherController():
                await self._target.another_controller(before)
            case Acknowledged(count):
                await self._wait(load, work, count)
            case Once():
                pass

    async def _wait(self, load: Load, work: asyncio.Task[None], count: int) -> None:
        """Wait until `count` more operations are acknowledged."""
        due, deadline = load.acknowledged + count, time.monotonic() + _PROGRESS_WITHIN_S
        while load.acknowledged < due:
            if work.done():
                work.result()
                raise NoProgressError("the clients stopped before the scenario was over")
            if time.monotonic() > deadline:
                missing = due - load.acknowledged
                raise NoProgressError(
                    f"{missing} of {count} operations were not acknowledged within "
                    f"{_PROGRESS_WITHIN_S:.0f} s"
                )
            await asyncio.sleep(_POLL_S)


def _judge(scenario: Scenario, result: Result, folder: Path) -> None:
    """Judge the evidence, and add what it shows to the result."""
    history = History(read_run(folder))
    rows = [each.row for each in judge(history)]
    result.violated = tuple(row.property for row in rows if row.verdict is Verdict.FAIL)
    judged = worst(rows)
    faults = [event["mono_ns"] for event in history.of_kind["fault_injected"]]
    elected = [event["mono_ns"] for event in history.of_kind["became_active"]]
    result.elections = sum(each > min(faults) for each in elected) if faults else 0
    result.open = sum(1 for each in history.operations if each.outcome == "info")
    done = sorted(
        each.completed["mono_ns"]
        for each in history.operations
        if each.outcome == "ok" and each.completed is not None
    )
    result.longest_gap_s = max((b - a for a, b in pairwise(done)), default=0) / 1e9
    expects = scenario.expects
    result.wrong += differences(expects, elections=result.elections, open_operations=result.open)
    result.verdict = decide(expects, judged=judged, violated=result.violated, wrong=result.wrong)
    if result.verdict is not Verdict.PASS:
        result.wrong += [
            f"{row.property} {row.name}: {row.verdict}: {row.why}"
            for row in rows
            if row.decides and row.verdict is not Verdict.PASS
        ]
        missing = sorted(set(expects.violates) - set(result.violated))
        result.wrong += [f"{each} holds, but a violation was expected" for each in missing]
