"""Runs one scenario on simulated nodes, in processes of their own, and judges the runs."""

from __future__ import annotations

import contextlib
import gc
import logging
import multiprocessing
import random
import resource
import time
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Final

from bridgehead.cluster import ClientHistory, RunSettings
from bridgehead.cluster.event_lines import EventLines
from chaos.judging import judge_run, operations_min
from chaos.player import NoProgressError, Player, Say
from chaos.result import Result
from chaos.scenario import SIMULATED, Scenario
from chaos.simulated.network import NetworkLoop
from chaos.simulated.sealed_run import SealedRun, digest_of
from chaos.simulated.target import SimulatedTarget
from chaos.simulated.virtual_time import NothingLeftError, virtual_host
from chaos.workload import Place
from judge.verdicts import Verdict

# A process that has used more memory gets no further run. What a run leaves behind is never freed.
_MEMORY_MAX_KIB: Final = 256 * 1024
_remains: list[object] = []


class Runner:
    """Runs one scenario with many seeds, several in one process, one after another.

    A fork for each run would take half as long again: each run would copy the pages that it writes
    to. The process is replaced before it uses too much memory, and after a crash.
    """

    def __init__(self, scenario: Scenario, say: Say) -> None:
        self._scenario = scenario
        self._say = say
        self._process: BaseProcess | None = None

    def run(self, seed: int, folder: Path) -> Result:
        """Run the scenario with a seed; keep its evidence in `folder`, which must not exist."""
        if self._process is None:
            self._start()
        try:
            self._requests.send((seed, folder))
            result: Result
            result, has_room = self._requests.recv()
        except (EOFError, OSError):
            result, has_room = _new_result(self._scenario, seed, folder), False
            result.wrong = ["the simulation crashed: its traceback is above"]
        if not has_room:
            self.close()
        return result

    def close(self) -> None:
        """End the process."""
        if self._process is not None:
            self._requests.close()
            self._process.join()
            self._process = None

    def _start(self) -> None:
        self._requests, served = multiprocessing.Pipe()
        self._process = multiprocessing.get_context("fork").Process(
            target=_serve, args=(self._scenario, self._say, served, self._requests)
        )
        self._process.start()
        served.close()


def run(scenario: Scenario, seed: int, folder: Path, say: Say) -> Result:
    """Run a scenario with one seed in a process of its own. See `Runner.run`."""
    with contextlib.closing(Runner(scenario, say)) as runner:
        return runner.run(seed, folder)


def _serve(scenario: Scenario, say: Say, requests: Connection, others_end: Connection) -> None:
    """Run a scenario with each seed that arrives, until the other end is closed."""
    others_end.close()
    while True:
        try:
            seed, folder = requests.recv()
        except EOFError:
            return
        result = simulate(scenario, seed, folder, say)
        used_kib = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        requests.send((result, used_kib < _MEMORY_MAX_KIB))


def _new_result(scenario: Scenario, seed: int, folder: Path) -> Result:
    return Result(scenario=scenario.name, seed=seed, tier=SIMULATED, folder=str(folder))


def simulate(scenario: Scenario, seed: int, folder: Path, say: Say) -> Result:
    """Run a scenario in this Python process. What killed nodes leave behind is never collected."""
    began_s = time.monotonic()
    scenario = scenario.of_seed(seed)
    result = _new_result(scenario, seed, folder)
    folder.mkdir(parents=True)
    logging.basicConfig(filename=folder / "nodes.log", level=logging.WARNING, force=True)
    broken_off: list[str] = []
    loop = NetworkLoop(seed)
    # If the coroutines of killed nodes were collected, they would run once more, as in a stop.
    gc.disable()
    _remains.append(loop)
    with virtual_host(loop, seed):
        simulation = _Simulation(scenario, seed, folder, loop, say, result)
        try:
            loop.run_until_complete(simulation.play())
        except (NoProgressError, NothingLeftError) as error:
            broken_off.append(str(error))
    if simulation.run.manifest is not None:
        result.digest = digest_of(simulation.run.record.folder, simulation.run.manifest)
        judge_run(scenario, result, folder)
    if broken_off:
        result.verdict = Verdict.HANG
        result.wrong = broken_off + result.wrong
    result.seconds = time.monotonic() - began_s
    return result


class _Simulation:
    """One run of a scenario."""

    def __init__(
        self,
        scenario: Scenario,
        seed: int,
        folder: Path,
        loop: NetworkLoop,
        say: Say,
        result: Result,
    ) -> None:
        self._scenario = scenario
        self._seed = seed
        self._loop = loop
        self._say = say
        self._result = result
        topology = scenario.topology
        self.run = SealedRun(
            loop,
            seed,
            folder,
            say,
            brokers=topology.brokers,
            properties={
                "zookeeper.session.timeout.ms": str(topology.session_timeout_ms),
                **scenario.workload.properties,
                **topology.properties,
            },
            node_properties=scenario.workload.node_properties,
            settings=RunSettings(
                scenario=scenario.name if scenario.steps else None,
                seed=seed,
                operations_min=operations_min(scenario),
            ),
            seeded_bugs=frozenset(topology.seeded_bugs),
        )

    async def play(self) -> None:
        """Start the cluster, play the scenario, stop, and seal the evidence."""
        async with self.run.sealed():
            await self.run.cluster.start()
            await self.run.until_complete()
            await self._play()

    async def _play(self) -> None:
        scenario, folder = self._scenario, self.run.record.folder
        lines = EventLines(folder, self.run.record.run_id, "harness", "chaos")
        target = SimulatedTarget(self.run.cluster, self.run.record, lines)
        with ClientHistory(folder, scenario.workload.name) as history:
            place = Place(
                address=self.run.cluster.address,
                brokers=target.brokers,
                source=random.Random(self._seed),
                history=history,
            )
            player = Player(scenario, random.Random(f"faults {self._seed}"), target, self._say)
            try:
                self._result.wrong += await player.play(place)
            finally:
                self._result.acknowledged = place.progress.acknowledged
                lines.close("the scenario is over")
