"""Each scenario names the seeded bugs that it catches, or the reason why it names none.

These tests run some scenarios with their bugs; `make prove-bugs` runs all of them.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

import pytest

from chaos.bugs import NAMES
from chaos.reproduction import not_found, of_scenarios, reproduce
from chaos.scenario import Catch, Scenario
from chaos.scenarios import SCENARIOS
from judge.properties import PROPERTY_SPECS
from judge.verdicts import Verdict

# Each scenario takes about a second. Most of their seeded bugs violate no property: another
# sentence of the report shows that the bug was found.
RUN_HERE: Final = (
    "controller_pause_within_session",
    "controller_zookeeper_cut",
    "polite_stop",
    "requests_lost",
    "same_name_three_brokers",
    "slow_link",
    "there_and_back",
)
OF_SCENARIOS: Final = {run.scenario: run for run in of_scenarios()}


@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda value: value.name)
def test_each_scenario_names_known_bugs_and_what_finds_them_or_a_reason(scenario: Scenario) -> None:
    catch = scenario.catches
    if not isinstance(catch, Catch):
        assert len(catch.split()) >= 4
        return
    assert catch.bugs
    assert set(catch.bugs) <= NAMES
    assert catch.found_by
    for finder in catch.found_by:
        assert finder in {spec.id for spec in PROPERTY_SPECS} or len(finder.split()) >= 3


@pytest.mark.parametrize("name", RUN_HERE)
def test_the_scenario_fails_with_its_bug(name: str, tmp_path: Path) -> None:
    run = OF_SCENARIOS[name]
    result = reproduce(run, tmp_path / "run")
    assert not_found(run, result) == (), result.wrong
    assert result.verdict in (Verdict.FAIL, Verdict.HANG)
