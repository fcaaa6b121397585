"""The registries of chaos are complete, and their values are well-formed."""

from __future__ import annotations

import importlib
import re
from pathlib import Path
from typing import Any
from unittest.mock import MagicMock

import pytest

import chaos
from chaos.fault import Ensemble, Fault, Network, Target
from chaos.faults import FAULTS
from chaos.missing import MISSING
from chaos.scenario import Scenario
from chaos.scenarios import SCENARIOS
from chaos.workloads import WORKLOADS
from judge.properties.faults_take_effect import EFFECTS

FOLDER = Path(chaos.__file__).parent
ROOT = FOLDER.parent


def values_of(folder: str, kind: type[Any]) -> set[str]:
    """Return the names of the values of this kind in the folder's modules."""
    paths = [path for path in (FOLDER / folder).glob("*.py") if path.stem != "__init__"]
    modules = [importlib.import_module(f"chaos.{folder}.{path.stem}") for path in paths]
    values = [value for module in modules for value in vars(module).values()]
    return {value.name for value in values if isinstance(value, kind)}


def test_each_fault_workload_and_scenario_is_in_its_registry() -> None:
    assert values_of("scenarios", Scenario) == {scenario.name for scenario in SCENARIOS}
    assert values_of("faults", Fault) == {fault.name for fault in FAULTS}
    assert {path.stem for path in (FOLDER / "workloads").glob("*.py")} - {"__init__"} == {
        workload.name for workload in WORKLOADS
    }


def test_names_are_used_once() -> None:
    for registry in (SCENARIOS, FAULTS):
        names = [value.name for value in registry]
        assert len(set(names)) == len(names)


def test_scenarios_use_every_fault_and_workload_of_the_registries() -> None:
    assert {step.fault for each in SCENARIOS for step in each.steps} == set(FAULTS)
    assert {each.workload.name for each in SCENARIOS} == {each.name for each in WORKLOADS}


@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda each: each.name)
def test_each_scenario_states_its_aim_in_one_sentence_and_names_a_bug(scenario: Scenario) -> None:
    assert scenario.aim.endswith(".")
    assert scenario.bug
    assert scenario.after > 0
    least, most = scenario.expects.elections
    assert most is None or least <= most


def test_only_scenarios_with_seeded_bugs_or_writes_by_hand_expect_a_violation() -> None:
    expecting = {each.name for each in SCENARIOS if each.expects.violates}
    assert expecting == {"canary", "controller_znode_deleted"}
    assert {each.name for each in SCENARIOS if each.topology.seeded_bugs} == {"canary"}


def test_each_missing_scenario_has_a_reason_and_the_tests_that_it_names_exist() -> None:
    for what, reason in MISSING:
        assert what
        assert len(reason.split()) >= 3, what
        for named in re.findall(r"tests/[\w/]+(?:\.py)?", reason):
            assert (ROOT / named).exists(), named


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.name)
async def test_the_judge_can_see_the_effect_of_each_fault(fault: Fault) -> None:
    """The evidence records the fault's action; the process that executes a kill records it."""
    target = MagicMock(spec=Target)
    target.brokers, target.network = (1, 2, 3), MagicMock(spec=Network)
    target.zookeeper = MagicMock(spec=Ensemble, members=(1, 2, 3))
    async with fault.inject(target):
        recorded = {call.args[0] for call in target.recorded.call_args_list}
    assert recorded == ({fault.action} - {"kill", "stop", "expire"})
    assert fault.action in EFFECTS
