"""Explorations of schedules: complete, repeatable, and with seeded bugs they find."""

from __future__ import annotations

from pathlib import Path

import pytest

import chaos.__main__ as command
from chaos.simulated.explore import Explored, Explorer, Totals, schedule_from


def explorer(folder: Path, *bugs: str) -> Explorer:
    return Explorer(folder, frozenset(bugs), lambda _totals: None)


@pytest.fixture(scope="module")
def one_deviation(tmp_path_factory: pytest.TempPathFactory) -> Totals:
    folder = tmp_path_factory.mktemp("explored")
    return explorer(folder).explore(deviations=1, histories=1_000, stops=False)


def test_every_schedule_with_one_deviation_passes_the_judge(one_deviation: Totals) -> None:
    assert one_deviation.violations == []
    assert one_deviation.complete == 1
    assert one_deviation.runs == len(one_deviation.histories) + one_deviation.cut


def test_schedules_include_failovers_and_orders_that_make_no_difference(
    one_deviation: Totals,
) -> None:
    assert set(one_deviation.elections) == {0, 1}
    assert one_deviation.cut > 0
    assert {"error 0", "connection closed"} == set(one_deviation.results)


def test_a_bound_on_histories_ends_the_exploration(tmp_path: Path) -> None:
    totals = explorer(tmp_path).explore(deviations=2, histories=3, stops=False)
    assert (len(totals.histories), totals.complete) == (3, 0)


def test_a_schedule_always_gives_the_same_history(tmp_path: Path) -> None:
    schedule = schedule_from("1:held,3:lost")
    histories = set[str]()
    for name in "ab":
        explored = explorer(tmp_path / name).replay(schedule)
        assert explored.wrong == []
        histories.add(explored.history)
    assert len(histories) == 1


def test_an_exploration_finds_a_bug_and_its_schedule_finds_it_again(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = ["explore", "--bugs", "forgets_outcomes", "--out", str(tmp_path)]
    assert command.main(out) == 1
    printed = capsys.readouterr().out
    assert "D2" in printed
    (replay,) = (line for line in printed.splitlines() if "--replay" in line)
    schedule = replay.split("'")[1]
    assert command.main([*out, "--replay", schedule]) == 1
    assert "D2" in capsys.readouterr().out
    assert command.main([*out[:1], *out[3:], "--replay", schedule]) == 0, "without the bug"


def test_an_exploration_finds_a_bug_that_as_many_random_schedules_miss(tmp_path: Path) -> None:
    bug = "relays_not_controller"
    explored = explorer(tmp_path / "a", bug).explore(deviations=2, histories=100, stops=True)
    assert [str(deviation) for deviation in explored.violations[0].schedule] == [
        "1:expired",
        "4:later",
    ]
    assert explored.violations[0].wrong[0].startswith("F5: ")
    sampled = explorer(tmp_path / "b", bug).sample(
        deviations=2, runs=explored.runs, seed=7, stops=True
    )
    assert (sampled.runs, sampled.violations) == (explored.runs, [])


def test_a_schedule_that_is_none_is_rejected(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert command.main(["explore", "--replay", "3:explode", "--out", str(tmp_path)]) == 2
    assert "'3:explode' is not PLACE:ACTION" in capsys.readouterr().err


def test_the_text_of_an_explored_run_names_each_message(tmp_path: Path) -> None:
    explored: Explored = explorer(tmp_path).replay(schedule_from("2:lost"))
    assert explored.texts[0].startswith("  0 Envelope, attempt 1 on ")
    assert explored.texts[2].endswith("back: lost")
    assert explored.result == "error 0"
