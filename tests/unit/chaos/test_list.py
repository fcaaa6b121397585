"""`bridgehead chaos list` groups, filters and recommends; the shell completes scenario names."""

from __future__ import annotations

import re

import pytest

from bridgehead.cli.modules import _complete_scenarios
from chaos.__main__ import main
from chaos.scenarios import SCENARIOS, THEMES, TO_START_WITH

NAMES = {scenario.name for scenario in SCENARIOS}


def listed(capsys: pytest.CaptureFixture[str], *arguments: str) -> list[str]:
    assert main(["list", *arguments]) == 0
    return re.findall(r"^(\w+)  \(", capsys.readouterr().out, re.MULTILINE)


def test_the_list_begins_with_three_scenarios_and_groups_the_rest(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main(["list"]) == 0
    output = capsys.readouterr().out
    assert len(TO_START_WITH) == 3
    assert set(TO_START_WITH) < NAMES
    first, _, rest = output.partition("pauses: ")
    assert re.findall(r"^(\w+)$", first, re.MULTILINE) == list(TO_START_WITH)
    assert re.findall(r"^([\w-]+): \d+$", "pauses: " + rest, re.MULTILINE) == list(THEMES)
    assert set(re.findall(r"^(\w+)  \(", rest, re.MULTILINE)) == NAMES
    assert max(map(len, output.splitlines())) <= 80


def test_the_list_can_be_filtered(capsys: pytest.CaptureFixture[str]) -> None:
    kills = listed(capsys, "--theme", "kills")
    assert kills == [scenario.name for scenario in THEMES["kills"]]
    simulated = listed(capsys, "--tier", "simulated")
    assert set(simulated) == {s.name for s in SCENARIOS if "simulated" in s.tiers} < NAMES
    assert listed(capsys, "wall CLOCK", "--tier", "local") == ["wall_clock_jumps"]


def test_a_filter_that_selects_nothing_is_an_error(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["list", "xyzzy"]) == 2
    assert "No scenario" in capsys.readouterr().err


def test_an_unknown_scenario_is_named_with_a_suggestion(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["run", "replies-los"]) == 2
    assert capsys.readouterr().err.endswith("Did you mean replies_lost?\n")


def test_the_shell_completes_scenario_names() -> None:
    assert _complete_scenarios("replies") == ["replies_lost"]
    assert set(_complete_scenarios("")) == NAMES | {"all"}
