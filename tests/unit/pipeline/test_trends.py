"""`pipeline trends`: the figures of runs, the runs in which they changed, and the page."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from judge.verdicts import Verdict, VerdictRow
from pipeline.__main__ import main
from pipeline.report.figures import FIGURES, Figures, figures, figures_from_json, figures_to_json
from pipeline.report.trends import Change, leaps, time_changes, trends, verdict_changes
from tests.unit.pipeline.test_report import content

RUN = Figures(
    run="a",
    verdict="PASS",
    scenario="kill <controller>",
    seed=7,
    version="0.1.0",
    started_ms=1_795_422_000_000,
    properties={"W1": "PASS", "D2": "PASS"},
    names={"W1": "single_writer", "D2": "at_most_once"},
    failovers=2,
    failover_ms={"election": 40.0, "loading the image": 10.0},
    hops={"ZooKeeper": {"p50_us": 2000.0, "p99_us": 9000.0}},
)


def slower(run: Figures, factor: float) -> Figures:
    hops = {
        hop: {name: value * factor for name, value in times.items()}
        for hop, times in run.hops.items()
    }
    return replace(run, hops=hops)


def term(epoch: int, **fields: Any) -> dict[str, Any]:
    names = (
        *("ended_ms", "active_ms", "loaded_ms", "closed_ms"),
        *("first_decision_ms", "first_received_ms"),
    )
    return {"epoch": epoch, **dict.fromkeys(names), **fields}


def latency(hop: str, requests: int, p50_us: float) -> dict[str, Any]:
    return {
        "api_key": 19,
        "route": "FORWARD",
        "hop": hop,
        "requests": requests,
        "p50_us": p50_us,
        "p99_us": 2 * p50_us,
    }


def verdict_row(of: str, verdict: Verdict) -> VerdictRow:
    return VerdictRow(
        property=of,
        name="single_writer",
        verdict=verdict,
        judged=1,
        violations=0,
        decides=verdict is not Verdict.NODATA,
        why="",
    )


def test_the_figures_of_a_run_come_from_its_tables() -> None:
    terms = [
        term(1, ended_ms=1_000, closed_ms=1_400),
        term(2, active_ms=1_600, loaded_ms=50.0, first_decision_ms=1_650, ended_ms=3_000),
        term(3, active_ms=3_300, loaded_ms=70.0, ended_ms=4_000),
    ]
    rows = [latency("total", 3, 10.0), latency("total", 9, 20.0)]
    verdicts = [verdict_row("W1", Verdict.PASS), verdict_row("W2", Verdict.NODATA)]
    run_figures = figures(content([], verdicts, terms=terms, latency=rows))
    assert (run_figures.verdict, run_figures.properties, run_figures.failovers) == (
        "PASS",
        {"W1": "PASS"},
        2,
    )
    assert run_figures.failover_ms == {
        "until the old session ends": (400 + 0) / 2,
        "election": (150 + 230) / 2,
        "loading the image": (50 + 70) / 2,
        "until the first decision": (50 + 0) / 2,
    }
    assert run_figures.hops == {"total (CreateTopics)": {"p50_us": 20.0, "p99_us": 40.0}}
    assert figures_from_json(figures_to_json([content([], verdicts)]))[0].verdict == "PASS"


def test_a_changed_verdict_is_listed_with_its_run() -> None:
    failed = replace(RUN, properties={"W1": "FAIL", "D2": "PASS"})
    without = replace(RUN, properties={"D2": "PASS"})
    assert verdict_changes([RUN, without, failed, failed, RUN]) == [
        Change(2, "W1 single_writer", "PASS", "FAIL"),
        Change(4, "W1 single_writer", "FAIL", "PASS"),
    ]
    assert verdict_changes([without, RUN]) == []


def test_a_time_far_outside_the_range_of_the_last_five_runs_is_listed_with_its_run() -> None:
    assert leaps([10.0, 12.0, 9.0, 15.0, 14.0]) == []
    assert leaps([10.0, 12.0, None, 15.1, 15.2]) == [(3, 12.0, 15.1)]
    assert leaps([10.0, 12.0, 7.9]) == [(2, 10.0, 7.9)]
    many = [10.0, 20.0, *[10.0] * 5, 20.0]
    assert leaps(many) == [(1, 10.0, 20.0), (7, 10.0, 20.0)], "only five runs count"
    changed = time_changes([RUN, RUN, slower(RUN, 1.5)])
    assert [(change.at, change.what) for change in changed] == [
        (2, "ZooKeeper, p50"),
        (2, "ZooKeeper, p99"),
    ]


def test_the_page_shows_runs_changes_and_charts() -> None:
    failed = replace(RUN, run="c", verdict="FAIL", properties={"W1": "FAIL", "D2": "PASS"})
    html = trends([RUN, replace(RUN, run="b"), slower(failed, 2)])
    assert "<td>3: c</td><td>W1 single_writer</td><td class=n>PASS</td>" in html
    assert "<td>3: c</td><td>ZooKeeper, p50</td><td class=n>2 ms</td><td class=n>4 ms</td>" in html
    assert "kill &lt;controller&gt;" in html
    assert "W1 single writer" in html
    assert "D2 at most once" not in html, "it passes in every run"
    assert html.count("run 3 changed it") == 1
    assert 'aria-label="Failover by run"' in html
    assert "http" not in html.replace("http-equiv", ""), "the page needs no network"


def test_a_single_run_without_requests_has_a_page() -> None:
    html = trends([replace(RUN, failovers=0, failover_ms={}, hops={})])
    for text in ("Nothing.", "No run has a failover.", "No run has a forwarded request."):
        assert text in html


def test_the_charts_of_a_single_run_show_its_times() -> None:
    """A line through one point is not visible, and there is no run 0.5."""
    html = trends([RUN])
    assert re.findall(r'<circle [^>]* class="line s(\d)"/>', html) == ["0", "1"]
    assert re.findall(r">([0-9.]+) </text>", html) == ["0", "1"]


def test_the_command_reads_the_folders_of_many_calls(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A run that is in two folders counts once."""
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        text = figures_to_json([content([])])
        (tmp_path / name / FIGURES).write_text(text, encoding="utf-8")
    page = tmp_path / "page.html"
    folders = [str(tmp_path / "one"), str(tmp_path / "two")]
    assert main(["trends", *folders, "--page", str(page)]) == 0
    assert "runs: 1; the page is" in capsys.readouterr().out
    assert "<h1>Runs over time: 1</h1>" in page.read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (None, "has no figures.json"),
        ("[]", "cannot be read: it has another form"),
        (json.dumps({"schema_version": 2}), "cannot be read: its schema_version is not 1"),
    ],
)
def test_a_folder_without_figures_is_named(
    text: str | None, message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    if text is not None:
        (tmp_path / FIGURES).write_text(text, encoding="utf-8")
    assert main(["trends", str(tmp_path)]) == 4
    assert message in capsys.readouterr().err
