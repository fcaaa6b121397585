"""Runs one scenario on simulated nodes, in a process of its own, and judges it."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import logging
import multiprocessing
import random
import tempfile
import time
from dataclasses import replace
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Final

from bridgehead.cluster import ClientHistory, RunSettings
from bridgehead.cluster.event_lines import EventLines
from bridgehead.cluster.run_record import RunRecord
from bridgehead.cluster.settings import ClusterSettings
from chaos.judging import judge_run, operations_min
from chaos.player import NoProgressError, Player, Say
from chaos.result import Result
from chaos.scenario import SIMULATED, Expectation, Scenario
from chaos.simulated.evidence import digest_of, seal_run
from chaos.simulated.network import NetworkLoop
from chaos.simulated.nodes import SimulatedCluster
from chaos.simulated.target import SimulatedTarget
from chaos.simulated.virtual_time import NothingLeftError, virtual_host
from chaos.simulated.zookeeper_session import SimulatedSession, ZooKeeperService
from chaos.workload import Place
from event_log.verdicts import Verdict
from node.znode_dump import dump_through

_COMPLETE_WITHIN_S: Final = 60.0
_POLL_S: Final = 0.02
_DUMP_TIMEOUT_MS: Final = 10_000
_REHEARSED: Final = 200  # successes


def run(scenario: Scenario, seed: int, folder: Path, say: Say) -> Result:
    """Run a scenario with a seed; keep its evidence in `folder`, which must not exist.

    The run has its own Python process. Tasks and other remains of killed nodes end with this
    process, so they cannot affect the next run.
    """
    receiver, sender = multiprocessing.Pipe(duplex=False)
    context = multiprocessing.get_context("fork")
    child = context.Process(target=_run_and_send, args=(scenario, seed, folder, say, sender))
    child.start()
    sender.close()
    try:
        result: Result = receiver.recv()
    except EOFError:
        wrong = ["the simulation crashed: its traceback is above"]
        result = _new_result(scenario, seed, folder)
        result.wrong = wrong
    child.join()
    return result


class Runner:
    """Runs one scenario with many seeds.

    Each run is a fork of a process that has already run the scenario without faults. That first run
    generates the codecs and fills the caches. This saves every later run a tenth of its time.
    """

    def __init__(self, scenario: Scenario, say: Say) -> None:
        self._requests, served = multiprocessing.Pipe()
        context = multiprocessing.get_context("fork")
        self._process = context.Process(target=_serve, args=(scenario, say, served, self._requests))
        self._process.start()
        served.close()

    def run(self, seed: int, folder: Path) -> Result:
        """See the function `run`."""
        self._requests.send((seed, folder))
        result: Result = self._requests.recv()
        return result

    def close(self) -> None:
        """End the process."""
        self._requests.close()
        self._process.join()


def _serve(scenario: Scenario, say: Say, requests: Connection, others_end: Connection) -> None:
    """Run a scenario with each seed that arrives, until the other end is closed."""
    others_end.close()
    without_faults = replace(
        scenario, draw=None, steps=(), after=_REHEARSED, expects=Expectation(elections=(0, None))
    )
    with tempfile.TemporaryDirectory() as folder:
        simulate(without_faults, 0, Path(folder) / "rehearsal", lambda _: None)
    with contextlib.suppress(EOFError):
        while True:
            seed, folder_of_seed = requests.recv()
            requests.send(run(scenario, seed, folder_of_seed, say))


def _new_result(scenario: Scenario, seed: int, folder: Path) -> Result:
    return Result(scenario=scenario.name, seed=seed, tier=SIMULATED, folder=str(folder))


def _run_and_send(
    scenario: Scenario, seed: int, folder: Path, say: Say, sender: Connection
) -> None:
    sender.send(simulate(scenario, seed, folder, say))


def simulate(scenario: Scenario, seed: int, folder: Path, say: Say) -> Result:
    """Run a scenario in this Python process; remains of killed nodes stay in the process."""
    began_s = time.monotonic()
    scenario = scenario.of_seed(seed)
    result = _new_result(scenario, seed, folder)
    gc.disable()  # A killed node must not run again when its coroutines are collected.
    folder.mkdir(parents=True)
    logging.basicConfig(filename=folder / "nodes.log", level=logging.WARNING, force=True)
    broken_off: list[str] = []
    loop = NetworkLoop(seed)
    with virtual_host(loop, seed):
        simulation = _Simulation(scenario, seed, folder, loop, say, result)
        try:
            loop.run_until_complete(simulation.play())
        except (NoProgressError, NothingLeftError) as error:
            broken_off.append(str(error))
    if simulation.is_sealed:
        result.digest = digest_of(simulation.record.folder)
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
        self._folder = folder
        self._loop = loop
        self._say = say
        self._result = result
        self.is_sealed = False
        topology = scenario.topology
        properties = {
            "zookeeper.session.timeout.ms": str(topology.session_timeout_ms),
            "auto.create.topics.enable": "false",
            **scenario.workload.properties,
            **topology.properties,
        }
        settings = ClusterSettings(
            brokers=topology.brokers,
            data_dir=folder,
            properties=properties,
            run=RunSettings(
                scenario=scenario.name if scenario.steps else None,
                seed=seed,
                operations_min=operations_min(scenario),
            ),
        )
        self.record = RunRecord(folder, settings, say)
        self._service = ZooKeeperService(loop.network, lambda: time.time_ns() // 1_000_000, seed)
        self._cluster = SimulatedCluster(
            loop,
            self._service,
            data_dir=folder / "nodes",
            evidence_dir=self.record.folder,
            brokers=topology.brokers,
            properties=properties,
            node_properties=scenario.workload.node_properties,
            seeded_bugs=frozenset(topology.seeded_bugs),
        )

    async def play(self) -> None:
        """Start the cluster, play the scenario, stop, and seal the evidence."""
        record, cluster = self.record, self._cluster
        record.start(chroot="", log_folders=None)
        record.dump_empty()
        try:
            await cluster.start()
            await self._until_complete()
            await self._play()
        finally:
            await cluster.stop()
            record.note_ends(cluster.nodes.values())
            await self._dump()
            record.end()
            seal_run(record.folder, self._service.model.log, time.time_ns() // 1_000_000)
            self.is_sealed = True

    async def _play(self) -> None:
        scenario, folder = self._scenario, self.record.folder
        lines = EventLines(folder, self.record.run_id, "harness", "chaos")
        target = SimulatedTarget(self._cluster, self.record, lines)
        with ClientHistory(folder, scenario.workload.name) as history:
            place = Place(
                address=self._cluster.address,
                brokers=target.brokers,
                source=random.Random(self._seed),
                history=history,
            )
            player = Player(scenario, random.Random(f"faults {self._seed}"), target, self._say)
            try:
                self._result.wrong += await player.play(place)
            finally:
                self._result.acknowledged = player.acknowledged
                lines.close("the scenario is over")

    async def _until_complete(self) -> None:
        deadline_s = self._loop.time() + _COMPLETE_WITHIN_S
        while not self._cluster.is_complete():
            if self._loop.time() > deadline_s:
                raise NoProgressError("not every broker knows all other brokers")
            await asyncio.sleep(_POLL_S)

    async def _dump(self) -> None:
        session = SimulatedSession(
            self._service, session_timeout_ms=_DUMP_TIMEOUT_MS, on_state=lambda _state: None
        )
        await session.open(_DUMP_TIMEOUT_MS / 1000)
        await dump_through(session, "", self.record.folder, "final")
        await session.close()
