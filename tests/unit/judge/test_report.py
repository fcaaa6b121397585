"""`judge --html` writes a report without Spark: timelines with faults, then the folded verdicts."""

from __future__ import annotations

import shlex
from html import unescape
from pathlib import Path

import pytest

from judge.__main__ import main
from judge.evidence.reading import read_sealed
from judge.history import History
from judge.report import charts
from judge.report.failovers import failovers
from judge.report.page import _percentile, terms, timeline
from tests import golden_histories


def report(name: str, folder: Path, capsys: pytest.CaptureFixture[str]) -> str:
    run = golden_histories.expand(golden_histories.load(name), folder / "run=golden")
    file = folder / "report.html"
    main([str(run), "--html", str(file)])
    assert "judged" in capsys.readouterr().out  # The verdicts are printed, too.
    return file.read_text(encoding="utf-8")


def test_the_timelines_come_first_and_the_verdicts_are_folded(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    html = report("election_storm", tmp_path, capsys)
    places = [html.index(f"<h2>{head}") for head in ("Over time", "Failover", "Properties")]
    assert places == sorted(places)
    folded = html[html.index("<details>") : html.index("</details>")]
    assert folded.startswith('<details><summary><span class="verdict')
    assert "elections have causes" in folded
    violations = html[html.index("<h2>Violations") :]
    assert "epoch 4 is election 4 of the run" in violations
    assert "<script" not in html


def test_the_report_has_the_commands_that_open_the_page_of_the_run(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """They can be pasted as they are, also if a folder's name has a space."""
    html = report("election_storm", tmp_path / "nightly runs", capsys)
    folder = shlex.quote(str(tmp_path / "nightly runs" / "run=golden"))
    assert folder.startswith("'")
    for command in (f"ui {folder}", f"ui {folder} --export run.html", f"judge {folder} --html"):
        assert f"bridgehead {command}" in unescape(html), command


def test_faults_are_marks_on_the_timelines(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    html = report("kill_by_command", tmp_path, capsys)
    timelines = html[html.index("<h2>Over time") : html.index("<h2>Failover")]
    assert timelines.count('class="mark"') == 2  # in the chart of requests and that of latencies
    assert timelines.count(">kill 2<") == 2


def test_the_axis_reaches_to_a_fault_after_the_last_request() -> None:
    line = charts.Line("a", [(0.0, 1.0), (2.0, 1.0)])
    drawn = charts.lines("t", [line], [], "ms", marks=[charts.Mark(40.0, "kill 7")])
    assert ">40 s<" in drawn
    right = charts.WIDTH - 12
    assert f'd="M{right:.1f} ' in drawn


def test_the_rows_are_those_of_the_evidence(tmp_path: Path) -> None:
    golden = golden_histories.load("forwarded_creation")
    history = History(read_sealed(golden_histories.expand(golden, tmp_path)))
    (slice_,) = timeline(history)
    forwarded = [e for e in history.of_kind["request_received"] if e["route"] == "FORWARD"]
    assert (slice_["forwarded"], slice_["resends"]) == (len(forwarded), 0)
    assert [(term["epoch"], term["node"]) for term in terms(history)] == [(1, "1")]


def test_a_report_that_cannot_be_written_is_an_error(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = golden_histories.expand(golden_histories.load("forwarded_creation"), tmp_path / "run=x")
    assert main([str(run), "--html", str(tmp_path / "missing" / "report.html")]) == 4
    assert "cannot be written" in capsys.readouterr().err


@pytest.mark.parametrize(("received_ms", "waited"), [(9_000, 250.0), (10_200, 50.0), (None, 250.0)])
def test_the_failover_chart_leaves_out_the_time_without_requests(
    received_ms: int | None, waited: float
) -> None:
    """The controller is active at 10,000 ms; the first request is decided 250 ms later."""
    before = {"epoch": 1, "ended_ms": 9_500, "closed_ms": None}
    after = {
        "epoch": 2,
        "active_ms": 10_000,
        "loaded_ms": 20.0,
        "first_decision_ms": 10_250,
        "first_received_ms": received_ms,
    }
    ((_, parts),) = failovers([before, after])
    assert parts[-1] == ("until the first decision", waited)


def test_percentiles_are_those_of_spark() -> None:
    """SELECT percentile(v, 0.5), percentile(v, 0.99) of 1, 2, 3, 10 is 2.5 and 9.79."""
    assert _percentile([1, 2, 3, 10], 0.5) == 2.5
    assert _percentile([1, 2, 3, 10], 0.99) == pytest.approx(9.79)
    assert _percentile([], 0.5) is None
