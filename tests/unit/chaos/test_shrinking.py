"""A failing simulated scenario is reduced to the faults that make it fail."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from chaos.faults.links import LOSE_REPLY_OF_COMMIT, RESET_PEERS_OF_CONTROLLER
from chaos.faults.zookeeper import EXPIRE_CONTROLLER
from chaos.result import Result
from chaos.scenario import Acknowledged, Scenario, Step
from chaos.scenarios.load import RANDOM_FAULTS
from chaos.simulated.run import run
from chaos.simulated.shrinking import as_file, is_same_failure, shrink
from judge.verdicts import Verdict

FAULTS = (RESET_PEERS_OF_CONTROLLER, LOSE_REPLY_OF_COMMIT, EXPIRE_CONTROLLER)
STEPS = tuple(Step(fault=fault, after=8, times=2) for fault in FAULTS)
SCENARIO = replace(RANDOM_FAULTS, draw=None, steps=STEPS, after=64)


def test_only_the_faults_and_operations_that_are_needed_remain() -> None:
    def fails(scenario: Scenario) -> bool:
        names = [step.fault for step in scenario.steps]
        return names.count(EXPIRE_CONTROLLER) == 2 and scenario.after >= 16

    smallest = shrink(SCENARIO, fails)
    assert smallest.steps == (Step(fault=EXPIRE_CONTROLLER, after=1),) * 2
    assert smallest.after == 16


def test_a_seeded_bug_is_reduced_to_one_fault_and_the_printed_scenario_fails_in_the_same_way(
    tmp_path: Path,
) -> None:
    """The bug: the first topic ids of a term are the same in every term.

    The file is the reduced scenario as Python source.
    """
    steps = tuple(Step(fault=fault, after=4, hold=Acknowledged(5)) for fault in FAULTS)
    topology = replace(SCENARIO.topology, seeded_bugs=("repeats_topic_ids",))
    scenario = replace(SCENARIO, steps=steps, topology=topology, after=8)
    runs = 0

    def result_of(candidate: Scenario) -> Result:
        nonlocal runs
        runs += 1
        return run(candidate, 1, tmp_path / str(runs), lambda _: None)

    first = result_of(scenario)
    assert first.violated == ("D10",)
    smallest = shrink(scenario, lambda smaller: is_same_failure(first, result_of(smaller)))
    assert [step.fault for step in smallest.steps] == [EXPIRE_CONTROLLER]
    names: dict[str, Scenario] = {}
    exec(as_file(smallest, "reduced"), names)
    assert is_same_failure(first, result_of(names["REDUCED"]))


def test_violations_that_the_scenario_expects_are_not_the_failure() -> None:
    """A run with only these violations may pass."""
    first, passing, failing = (
        Result(
            scenario="s", seed=1, tier="simulated", folder="f", verdict=verdict, violated=violated
        )
        for verdict, violated in (
            (Verdict.FAIL, ("D1", "W5")),
            (Verdict.PASS, ("W5",)),
            (Verdict.FAIL, ("D1",)),
        )
    )
    assert is_same_failure(first, failing, ("W5",))
    assert not is_same_failure(first, passing, ("W5",))
    by_elections = replace(first, violated=("W5",))
    assert is_same_failure(by_elections, by_elections, ("W5",))
    assert not is_same_failure(by_elections, passing, ("W5",))
    assert not is_same_failure(by_elections, failing, ("W5",))
