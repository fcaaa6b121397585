"""A seeded bug as a value: the scenario that shows it, and what the judge then finds."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from chaos.local.run import run as run_locally
from chaos.scenario import LOCAL, Scenario
from chaos.scenarios import SCENARIOS
from chaos.simulated.run import run as run_simulated


@dataclass(frozen=True, slots=True, kw_only=True)
class SeededBug:
    """Bugs of node/seeded_bugs.py, and a run with them.

    If the scenario runs in the simulated tier, the seed decides everything, so the run always
    violates the same properties.
    """

    bugs: tuple[str, ...]  # names in node/seeded_bugs.py
    scenario: str
    found_by: tuple[str, ...]  # properties that the run always violates; others may fail as well

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


def reproduce(bug: SeededBug, folder: Path, seed: int = 1) -> tuple[str, ...]:
    """Run the scenario with the bug; return the ids of the violated properties."""
    scenario = scenario_with(bug.scenario, bug.bugs)
    if bug.tier == LOCAL:
        return asyncio.run(run_locally(scenario, seed, folder, _say_nothing)).violated
    return run_simulated(scenario, seed, folder, _say_nothing).violated


def _say_nothing(_sentence: str) -> None:
    pass
