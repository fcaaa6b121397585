"""Each scenario names the seeded bugs that it catches, or the reason why it names none.

These tests run some scenarios with their bugs; `make prove-bugs` runs all of them.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

import pytest

from chaos.bugs import BUGS, NAMES, exactly_once
from chaos.bugs.bug import FOUND_BY_RUNS, Bug
from chaos.reproduction import not_found, of_bugs, of_scenarios, reproduce
from chaos.scenario import Catch, Scenario
from chaos.scenarios import SCENARIOS
from judge.properties import PROPERTY_SPECS
from judge.verdicts import Verdict
from tests.kill_matrix.counterexamples import COUNTEREXAMPLES, Counterexample
from tests.kill_matrix.golden import WITHOUT_SEEDED_BUG

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


# Each seeded bug of a node is used by a test.

TESTS: Final = Path(__file__).parents[2]


def test_each_seeded_bug_has_a_name_of_its_own_and_says_what_it_does() -> None:
    assert len({bug.name for bug in BUGS}) == len(BUGS)
    assert all(bug.does.endswith(".") and len(bug.does.split()) >= 4 for bug in BUGS)


@pytest.mark.parametrize("bug", BUGS, ids=lambda bug: bug.name)
def test_the_test_exists_and_uses_the_bug(bug: Bug) -> None:
    file, _, function = bug.test.partition("::")
    source = (TESTS / file).read_text(encoding="utf-8")
    assert re.search(rf"^(async )?def {function}\(", source, re.MULTILINE)
    if bug.test == FOUND_BY_RUNS:
        assert bug.name in {name for run in (*of_bugs(), *of_scenarios()) for name in run.bugs}
    elif bug.test == exactly_once.REPLAYED:
        replays = [c for c in COUNTEREXAMPLES.values() if isinstance(c, Counterexample)]
        assert bug.name in {replay.bug for replay in replays}
    else:
        assert re.search(rf"\b{bug.name}\b", source)


def test_each_property_has_a_seeded_bug_or_a_reason() -> None:
    violated = {name for bug in BUGS for name in re.findall(r"\b[A-Z]\d+", bug.found_by)}
    assert violated | set(WITHOUT_SEEDED_BUG) == {spec.id for spec in PROPERTY_SPECS}
    assert not violated & set(WITHOUT_SEEDED_BUG)
