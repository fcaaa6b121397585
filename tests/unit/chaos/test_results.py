"""When a run passes, and what the result files contain."""

from __future__ import annotations

import json
import xml.etree.ElementTree as ElementTree
from dataclasses import replace
from pathlib import Path

import pytest

import chaos.__main__ as command
from chaos.judging import required
from chaos.result import Result, decide, differences, write_files
from chaos.scenario import Expectation
from chaos.simulated.run import Runner
from judge.exit_codes import INTERRUPTED
from judge.verdicts import Verdict, VerdictRow, worst

ONE_ELECTION = Expectation(elections=(1, 1), open_max=2)
BY_HAND = Expectation(elections=(0, None), violates=("W1", "W2"))
BROKEN = replace(BY_HAND, may_violate_others=True)


@pytest.mark.parametrize(
    ("expects", "judged", "violated", "wrong", "verdict"),
    [
        (ONE_ELECTION, Verdict.PASS, (), (), Verdict.PASS),
        (ONE_ELECTION, Verdict.PASS, (), ("a client saw it",), Verdict.FAIL),
        (ONE_ELECTION, Verdict.FAIL, ("W1",), (), Verdict.FAIL),
        (ONE_ELECTION, Verdict.NODATA, (), (), Verdict.NODATA),
        (BROKEN, Verdict.FAIL, ("W1", "W2", "D1"), ("a client saw it",), Verdict.PASS),
        (BROKEN, Verdict.FAIL, ("W2",), (), Verdict.FAIL),
        (BROKEN, Verdict.PASS, (), (), Verdict.FAIL),
        (BY_HAND, Verdict.PASS, ("W1", "W2"), (), Verdict.PASS),
        (BY_HAND, Verdict.PASS, ("W1",), (), Verdict.FAIL),
        (BY_HAND, Verdict.FAIL, ("W1", "W2", "D1"), (), Verdict.FAIL),
        (BY_HAND, Verdict.PASS, ("W1", "W2"), ("a client saw it",), Verdict.FAIL),
        (BY_HAND, Verdict.UNKNOWN, ("W1", "W2"), (), Verdict.UNKNOWN),
        (BY_HAND, Verdict.NODATA, ("W1", "W2"), (), Verdict.NODATA),
        (BY_HAND, Verdict.CRASHED, ("W1", "W2"), (), Verdict.CRASHED),
    ],
)
def test_a_run_passes_only_if_judge_and_clients_meet_the_expectation(
    expects: Expectation,
    judged: Verdict,
    violated: tuple[str, ...],
    wrong: tuple[str, ...],
    verdict: Verdict,
) -> None:
    assert decide(expects, judged=judged, violated=violated, wrong=wrong) is verdict


def test_a_run_is_undecided_if_a_required_property_has_nothing_to_judge() -> None:
    held, idle = (
        VerdictRow(
            property=name,
            name="n",
            verdict=verdict,
            judged=0,
            violations=0,
            decides=verdict is Verdict.PASS,
            why="",
        )
        for name, verdict in (("W1", Verdict.PASS), ("D3", Verdict.NODATA))
    )
    for judges, verdict in (((), Verdict.PASS), (("W1",), Verdict.PASS), (("D3",), Verdict.NODATA)):
        assert worst(required(row, judges) for row in (held, idle)) is verdict


def test_unexpected_counts_of_elections_and_open_operations_are_reported() -> None:
    assert differences(ONE_ELECTION, elections=1, open_operations=2, acknowledged=0) == []
    assert len(differences(ONE_ELECTION, elections=0, open_operations=2, acknowledged=0)) == 1
    assert len(differences(ONE_ELECTION, elections=2, open_operations=3, acknowledged=0)) == 2
    assert differences(BROKEN, elections=99, open_operations=99, acknowledged=0) == []


def test_too_few_successes_are_reported() -> None:
    expects = Expectation(elections=(0, None), acknowledged_min=10)
    assert differences(expects, elections=0, open_operations=0, acknowledged=10) == []
    (sentence,) = differences(expects, elections=0, open_operations=0, acknowledged=9)
    assert sentence == "9 operations succeeded; expected at least 10"


def test_a_long_time_without_a_success_is_reported() -> None:
    expects = Expectation(elections=(0, None), gap_max_s=4)
    counts = {"elections": 0, "open_operations": 0, "acknowledged": 0}
    assert differences(expects, **counts, longest_gap_s=4.0) == []
    (sentence,) = differences(expects, **counts, longest_gap_s=6.0)
    assert sentence == "no operation succeeded for 6.0 s; expected at most 4 s"


def test_results_of_earlier_runs_are_deleted_even_if_no_run_ends(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_files(tmp_path, [Result(scenario="a", seed=1, tier="local", folder="f")])

    def interrupt(*_: object) -> Result:
        raise KeyboardInterrupt

    monkeypatch.setattr(Runner, "run", interrupt)
    run = ["run", "quiet_sea", "--tier", "simulated", "--out", str(tmp_path)]
    assert command.main(run) == INTERRUPTED
    assert list(tmp_path.iterdir()) == []


def test_result_files_name_the_failed_run_and_its_replay_command(tmp_path: Path) -> None:
    passed = Result(scenario="a", seed=1, tier="local", folder="f", verdict=Verdict.PASS)
    failed = Result(
        scenario="b", seed=7, tier="local", folder="g", verdict=Verdict.HANG, wrong=["it hung"]
    )
    undecided = Result(scenario="c", seed=1, tier="local", folder="h", verdict=Verdict.NODATA)
    write_files(tmp_path, [passed, failed, undecided])
    suite = ElementTree.parse(tmp_path / "junit.xml").getroot()
    assert (suite.get("tests"), suite.get("failures"), suite.get("errors")) == ("3", "1", "1")
    failure = suite.find("testcase[@name='b[7]']/failure")
    assert failure is not None
    assert failure.text is not None
    assert "bridgehead chaos run b --seed 7" in failure.text
    runs = json.loads((tmp_path / "results.json").read_text())["runs"]
    assert [run["verdict"] for run in runs] == ["PASS", "HANG", "NODATA"]
