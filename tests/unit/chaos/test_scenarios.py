"""The registries of chaos are complete, and their values are well-formed."""

from __future__ import annotations

import re
from importlib import import_module
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import chaos
from chaos.fault import Fault
from chaos.faults import FAULTS
from chaos.missing import MISSING
from chaos.scenario import Scenario
from chaos.scenarios import SCENARIOS
from chaos.simulated.target import SimulatedTarget
from chaos.workload import Workload
from chaos.workloads import WORKLOADS
from judge.effects import EFFECT_OF, EFFECTS

FOLDER = Path(chaos.__file__).parent
ROOT = FOLDER.parent


def files_of(folder: str) -> set[str]:
    return {path.stem for path in (FOLDER / folder).glob("*.py")} - {"__init__"}


def defined(folder: str, kind: type) -> list[Any]:
    """Return the values of this type that the modules of a folder assign to names."""
    modules = [import_module(f"chaos.{folder}.{name}") for name in sorted(files_of(folder))]
    return [var for module in modules for var in vars(module).values() if isinstance(var, kind)]


def test_each_fault_workload_and_scenario_is_in_its_registry() -> None:
    assert {scenario.name for scenario in defined("scenarios", Scenario)} == {
        s.name for s in SCENARIOS
    }
    assert {fault.name for fault in defined("faults", Fault)} == {fault.name for fault in FAULTS}
    assert {workload.name for workload in defined("workloads", Workload)} == {
        workload.name for workload in WORKLOADS
    }


def test_no_two_faults_and_no_two_scenarios_have_the_same_name() -> None:
    assert len({scenario.name for scenario in SCENARIOS}) == len(SCENARIOS)
    assert len({fault.name for fault in FAULTS}) == len(FAULTS)


def test_scenarios_use_every_fault_and_workload_of_the_registries() -> None:
    assert {step.fault for scenario in SCENARIOS for step in scenario.steps} == set(FAULTS)
    assert {scenario.workload.name for scenario in SCENARIOS} == {
        workload.name for workload in WORKLOADS
    }


@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda value: value.name)
def test_each_scenario_states_its_aim_in_one_sentence_and_names_a_bug(scenario: Scenario) -> None:
    assert scenario.aim.endswith(".")
    assert scenario.bug
    assert scenario.after > 0
    least, most = scenario.expects.elections
    assert most is None or least <= most


def test_only_scenarios_with_seeded_bugs_or_writes_by_hand_expect_a_violation() -> None:
    expecting = {scenario.name for scenario in SCENARIOS if scenario.expects.violates}
    assert expecting == {"canary", "controller_znode_deleted"}
    assert {scenario.name for scenario in SCENARIOS if scenario.topology.seeded_bugs} == {"canary"}


def test_each_missing_scenario_has_a_reason_and_the_tests_that_it_names_exist() -> None:
    for what, reason in MISSING:
        assert what
        assert len(reason.split()) >= 3, what
        for named in re.findall(r"tests/[\w/]+(?:\.py)?", reason):
            assert (ROOT / named).exists(), named


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.name)
def test_the_judge_has_the_effect_of_each_fault_and_expects_it_of_the_action(fault: Fault) -> None:
    assert EFFECT_OF[fault.action].name == fault.effect


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.name)
def test_one_verb_names_a_fault_and_its_action(fault: Fault) -> None:
    assert fault.name.partition("_")[0] == fault.action.partition("_")[0]


def test_each_action_has_one_effect() -> None:
    assert sum(len(effect.actions) for effect in EFFECTS) == len(EFFECT_OF)


def simulated_target() -> SimulatedTarget:
    nothing: Any = SimpleNamespace(nodes={})
    return SimulatedTarget(nothing, nothing, nothing)


def test_a_scenario_is_not_simulated_if_the_simulated_cluster_lacks_what_its_faults_need() -> None:
    target = simulated_target()
    for scenario in SCENARIOS:
        steps = scenario.draw.steps if scenario.draw else scenario.steps
        if not all(isinstance(target, step.fault.needs) for step in steps):
            assert scenario.not_simulated, scenario.name
