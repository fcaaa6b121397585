"""`make prove-bugs`: chaos runs find each seeded bug, and simulated scenarios pass without it.

This takes about 20 minutes, most of it for runs with real processes (the tier `local`).
ARGS="-k polite_stop" selects the tests whose names contain `polite_stop`.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from chaos.kafka_bugs import KAFKA_BUGS
from chaos.other_bugs import OTHER_BUGS
from chaos.scenario import SIMULATED, Scenario
from chaos.scenarios import SCENARIOS
from chaos.seeded_bug import SeededBug, bugs_of_scenarios, not_found, reproduce
from chaos.simulated.run import run
from judge.verdicts import Verdict

_TIMEOUT_S = 900  # hundred_failovers takes 300 s on a busy machine
# Each bug once: some are in two of the registries.
BUGS = {
    (bug.scenario, bug.bugs, bug.found_by): bug
    for bug in (*KAFKA_BUGS, *OTHER_BUGS, *bugs_of_scenarios())
}.values()


@pytest.mark.timeout(_TIMEOUT_S)
@pytest.mark.parametrize("bug", BUGS, ids=lambda bug: f"{','.join(bug.bugs)}-{bug.scenario}")
def test_the_judge_finds_the_bug(bug: SeededBug, tmp_path: Path) -> None:
    result = reproduce(bug, tmp_path / "run")
    assert not_found(bug, result) == (), result.wrong


@pytest.mark.timeout(_TIMEOUT_S)
@pytest.mark.parametrize(
    "scenario", [each for each in SCENARIOS if SIMULATED in each.tiers], ids=lambda each: each.name
)
def test_without_the_bug_the_scenario_passes(scenario: Scenario, tmp_path: Path) -> None:
    result = run(scenario, 1, tmp_path / "run", lambda _sentence: None)
    assert result.verdict is Verdict.PASS, result.wrong
