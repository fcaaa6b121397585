"""Simulated nodes end where the paths of spec/paths.toml end, faulty ones at counterexamples."""

from __future__ import annotations

from pathlib import Path

import pytest

from chaos.simulated.replay import Replayed, differences, replay
from judge.evidence.run_lookup import read_run
from judge.history import History
from judge.verdicts import Verdict, judge
from spec.models import CONTROLS
from spec.paths import GOALS, model_of, read_paths
from tests.kill_matrix.counterexamples import COUNTEREXAMPLES, Counterexample

PATHS = read_paths()
REACHED = [goal.name for goal in GOALS if not goal.part]
FAULTY = {part: c for part, c in COUNTEREXAMPLES.items() if isinstance(c, Counterexample)}
# What another program does in a path violates these properties.
OF_OTHERS = {
    "former_controller_is_wrong": {"W5", "W6"},
    "late_envelope_is_executed": {"D2"},  # a limit of the design: docs/specification.md
    "other_program_writes": {"W1", "W2", "W6"},
    "FENCE": {"W5", "W6"},  # it deletes /controller
    "zombie_was_fenced": {"W5", "W6"},
    "write_conflicted": {"W1", "W2", "W6", "D5"},  # it creates a topic
}


def replayed(name: str, folder: Path, *bugs: str) -> Replayed:
    path = PATHS[name]
    return replay(path.steps, model_of(path.goal).requests, folder / "run", frozenset(bugs))


def violated(replayed: Replayed) -> set[str]:
    rows = [judgement.row for judgement in judge(History(read_run(replayed.folder)))]
    return {row.property for row in rows if row.verdict in (Verdict.FAIL, Verdict.HANG)}


def test_there_is_a_path_to_each_goal_and_a_row_for_each_control() -> None:
    assert list(PATHS) == [goal.name for goal in GOALS]
    assert list(COUNTEREXAMPLES) == [control.part for control in CONTROLS]


@pytest.mark.parametrize("name", REACHED)
def test_nodes_end_where_the_path_ends(name: str, tmp_path: Path) -> None:
    end = replayed(name, tmp_path)
    assert end.departed == ""
    assert differences(PATHS[name].end, end.end) == {}
    assert violated(end) == OF_OTHERS.get(name, set())


@pytest.mark.parametrize("part", FAULTY)
def test_faulty_nodes_end_where_the_counterexample_ends(part: str, tmp_path: Path) -> None:
    end = replayed(part, tmp_path, FAULTY[part].bug)
    assert end.departed == ""
    assert differences(PATHS[part].end, end.end) == {}
    assert violated(end) == set(FAULTY[part].violates)


@pytest.mark.parametrize("part", COUNTEREXAMPLES)
def test_nodes_depart_from_each_counterexample(part: str, tmp_path: Path) -> None:
    """They do not do a step, or the end is another one. Then they finish without a violation."""
    end = replayed(part, tmp_path)
    assert end.departed or differences(PATHS[part].end, end.end)
    assert violated(end) == OF_OTHERS.get(part, set())
    assert all(result != "in progress" for result in end.results)
