"""The registries of chaos are complete, and their values are well-formed."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import chaos
from chaos.faults import FAULTS
from chaos.missing import MISSING
from chaos.scenario import Scenario
from chaos.scenarios import SCENARIOS
from chaos.workloads import WORKLOADS
from judge.properties.faults_take_effect import EFFECTS

FOLDER = Path(chaos.__file__).parent
ROOT = FOLDER.parent


def files_of(folder: str) -> set[str]:
    return {path.stem for path in (FOLDER / folder).glob("*.py")} - {"__init__"}


def test_each_fault_workload_and_scenario_file_is_in_its_registry() -> None:
    assert files_of("scenarios") == {each.name for each in SCENARIOS}
    assert files_of("faults") == {each.name for each in FAULTS}
    assert files_of("workloads") == {each.name for each in WORKLOADS}


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


@pytest.mark.parametrize("path", sorted((FOLDER / "faults").glob("*.py")), ids=lambda p: p.stem)
def test_the_judge_can_see_the_effect_of_each_recorded_fault(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    recorded = [part.split('"')[1] for part in text.split("target.recorded(")[1:]]
    assert set(recorded) <= set(EFFECTS)
