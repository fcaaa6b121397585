"""A seeded bug as a value: the scenario that shows it, and what the judge then finds."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from chaos.local.run import run as run_locally
from chaos.result import Result
from chaos.scenario import LOCAL, Catch, Scenario
from chaos.scenarios import SCENARIOS
from chaos.simulated.run import run as run_simulated
from judge.properties import PROPERTY_SPECS


@dataclass(frozen=True, slots=True, kw_only=True)
class SeededBug:
    """Bugs of node/seeded_bugs.py, and a scenario that finds them.

    If the scenario runs in the simulated tier, the seed decides everything, so the run always
    violates the same properties.
    """

    bugs: tuple[str, ...]  # names in node/seeded_bugs.py
    scenario: str
    found_by: tuple[str, ...]  # see chaos.scenario.Catch

    @property
    def tier(self) -> str:
        """The tier in which the command runs the scenario."""
        return scenario_with(self.scenario, self.bugs).tiers[0]

    @property
    def command(self) -> str:
        """The command that reproduces the bug."""
        tier = "" if self.tier == LOCAL else f" --tier {self.tier}"
        return f"bridgehead chaos run {self.scenario} --bugs {','.join(self.bugs)}{tier}"


def scenario_with(name: str, bugs: Sequence[str]) -> Scenario:
    """Return a scenario whose nodes have seeded bugs."""
    (scenario,) = (each for each in SCENARIOS if each.name == name)
    return replace(scenario, topology=replace(scenario.topology, seeded_bugs=tuple(bugs)))


def bugs_of_scenarios() -> tuple[SeededBug, ...]:
    """Return the seeded bugs that the scenarios catch."""
    return tuple(
        SeededBug(bugs=each.catches.bugs, scenario=each.name, found_by=each.catches.found_by)
        for each in SCENARIOS
        if isinstance(each.catches, Catch)
    )


def reproduce(bug: SeededBug, folder: Path, seed: int = 1) -> Result:
    """Run the scenario with the bug."""
    scenario = scenario_with(bug.scenario, bug.bugs)
    if bug.tier == LOCAL:
        return asyncio.run(run_locally(scenario, seed, folder, _say_nothing))
    return run_simulated(scenario, seed, folder, _say_nothing)


def not_found(bug: SeededBug, result: Result) -> tuple[str, ...]:
    """Return what the run with the bug should have found, but did not."""
    properties = {spec.id for spec in PROPERTY_SPECS}
    report = "\n".join(result.wrong)
    return tuple(
        each
        for each in bug.found_by
        if (each not in result.violated if each in properties else each not in report)
    )


def _say_nothing(_sentence: str) -> None:
    pass
