"""`make prove-bugs`: chaos runs find each seeded bug, and simulated scenarios pass without it.

This takes about 20 minutes, most of it for runs with real processes (the tier `local`).
ARGS="-k polite_stop" selects the tests whose names contain `polite_stop`.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from chaos.reproduction import Reproduction, not_found, of_bugs, of_scenarios, reproduce
from chaos.scenario import SIMULATED, Scenario
from chaos.scenarios import SCENARIOS
from chaos.simulated.run import run as run_simulated
from judge.verdicts import Verdict

_TIMEOUT_S = 900  # hundred_failovers takes 300 s on a busy machine
# Each run once: some are named by a bug and by a scenario.
RUNS = tuple(dict.fromkeys((*of_bugs(), *of_scenarios())))


@pytest.mark.timeout(_TIMEOUT_S)
@pytest.mark.parametrize("run", RUNS, ids=lambda run: f"{','.join(run.bugs)}-{run.scenario}")
def test_the_judge_finds_the_bug(run: Reproduction, tmp_path: Path) -> None:
    result = reproduce(run, tmp_path / "run")
    assert not_found(run, result) == (), result.wrong


@pytest.mark.timeout(_TIMEOUT_S)
@pytest.mark.parametrize(
    "scenario",
    [scenario for scenario in SCENARIOS if SIMULATED in scenario.tiers],
    ids=lambda value: value.name,
)
def test_without_the_bug_the_scenario_passes(scenario: Scenario, tmp_path: Path) -> None:
    result = run_simulated(scenario, 1, tmp_path / "run", lambda _sentence: None)
    assert result.verdict is Verdict.PASS, result.wrong
