"""Runs of scenarios with seeded bugs, and what the judge must find in them."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from chaos.bugs import BUGS
from chaos.bugs.bug import Bug
from chaos.local.run import run as run_locally
from chaos.result import Result
from chaos.scenario import LOCAL, Catch, Scenario
from chaos.scenarios import SCENARIOS
from chaos.simulated.run import run as run_simulated
from judge.properties import PROPERTY_SPECS


@dataclass(frozen=True, slots=True, kw_only=True)
class Reproduction:
    """Seeded bugs, and a scenario that finds them.

    If the scenario runs in the simulated tier, the seed decides everything, so the run always
    violates the same properties.
    """

    bugs: tuple[str, ...]  # see chaos.bugs.NAMES
    scenario: str
    found_by: tuple[str, ...]  # see chaos.scenario.Catch

    @property
    def tier(self) -> str:
        """The tier in which the command runs the scenario."""
        return scenario_with(self.scenario, self.bugs).tiers[0]

    @property
    def command(self) -> str:
        """The command that reproduces the bugs."""
        tier = "" if self.tier == LOCAL else f" --tier {self.tier}"
        return f"bridgehead chaos run {self.scenario} --bugs {','.join(self.bugs)}{tier}"


def scenario_with(name: str, bugs: Sequence[str]) -> Scenario:
    """Return a scenario whose nodes have seeded bugs."""
    (scenario,) = (candidate for candidate in SCENARIOS if candidate.name == name)
    return replace(scenario, topology=replace(scenario.topology, seeded_bugs=tuple(bugs)))


def of_bug(bug: Bug) -> Reproduction | None:
    """Return the run that the bug names; None if it names none."""
    if bug.run is None:
        return None
    names = (*bug.run.together_with, bug.name)
    return Reproduction(bugs=names, scenario=bug.run.scenario, found_by=bug.run.found_by)


def of_bugs() -> tuple[Reproduction, ...]:
    """Return the runs that bugs name."""
    return tuple(run for bug in BUGS if (run := of_bug(bug)) is not None)


def of_scenarios() -> tuple[Reproduction, ...]:
    """Return the runs with the seeded bugs that scenarios catch."""
    return tuple(
        Reproduction(
            bugs=scenario.catches.bugs,
            scenario=scenario.name,
            found_by=scenario.catches.found_by,
        )
        for scenario in SCENARIOS
        if isinstance(scenario.catches, Catch)
    )


def reproduce(wanted: Reproduction, folder: Path, seed: int = 1) -> Result:
    """Run the scenario with the bugs."""
    scenario = scenario_with(wanted.scenario, wanted.bugs)
    if wanted.tier == LOCAL:
        return asyncio.run(run_locally(scenario, seed, folder, _say_nothing))
    return run_simulated(scenario, seed, folder, _say_nothing)


def not_found(wanted: Reproduction, result: Result) -> tuple[str, ...]:
    """Return what the run with the bugs should have found, but did not."""
    properties = {spec.id for spec in PROPERTY_SPECS}
    report = "\n".join(result.wrong)
    return tuple(
        finder
        for finder in wanted.found_by
        if (finder not in result.violated if finder in properties else finder not in report)
    )


def _say_nothing(_sentence: str) -> None:
    pass
