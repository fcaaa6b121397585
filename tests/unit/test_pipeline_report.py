"""The report's page, out of rows by hand: no Spark, no files."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from event_log.evidence import Manifest, ManifestFile, RunDescription, ZooKeeperEvidence
from event_log.promises import VerdictRow
from pipeline.evidence import Run
from pipeline.report import charts
from pipeline.report.collect import QUESTIONS, Content
from pipeline.report.page import page

_LOG = ManifestFile(path="kafka=1/x.log", kind="kafka_request", bytes=1, sha256="", lines=1)


def content(
    files: Sequence[ManifestFile], verdicts: Sequence[VerdictRow] = (), **rows: Any
) -> Content:
    manifest = Manifest(
        run=RunDescription(run_id="r"),
        sealed_ms=0,
        zookeeper=ZooKeeperEvidence(logs=True),
        files=list(files),
    )
    run = Run(id="r", folder=Path("/r"), manifest=manifest, digest="d", missing=())
    told: Mapping[str, Any] = {name: rows.get(name, []) for name in QUESTIONS}
    return Content(run=run, verdicts=verdicts, rows=told)


def test_a_real_kafkas_run_shows_who_writes_and_not_what_its_logs_cannot_say() -> None:
    """Its sections stand there instead of those that speak of events."""
    shown = page(
        [
            content(
                [_LOG],
                kafka_shares=[
                    {"broker": "2", "api": "CREATE_TOPICS", "requests": 1234, "forwarded": 617}
                ],
                unfenced=[
                    {
                        "below": "/config/topics",
                        "fenced": 0,
                        "unfenced": 205,
                        "sessions": 1,
                        "first_unfenced_zxid": 124,
                    }
                ],
            )
        ]
    )
    assert "<td>CREATE_TOPICS</td><td class=n>1,234</td><td class=n>617</td>" in shown
    assert "<td class=n>205</td>" in shown
    assert "zxid 124" in shown
    assert "The authorizer denied nobody anything." in shown
    assert "No request was read." not in shown


def test_a_run_of_events_shows_no_empty_sections_of_a_real_kafka() -> None:
    """It has neither of the two logs."""
    shown = page([content([])])
    assert "No request was read." in shown
    assert "Who writes through whom" not in shown


def broken(of: str, verdict: str, violations: int) -> VerdictRow:
    return VerdictRow(
        property=of,
        name="single_writer",
        verdict=verdict,
        judged=321,
        violations=violations,
        decides=True,
        why="",
    )


def test_the_first_violations_are_in_sight_and_the_others_one_click_away() -> None:
    """A page of two hundred alike hides the one that is different."""
    rows = [{"property": "W1", "sentence": f"<{at}>", "rows": ["zxid/1"]} for at in range(9)]
    shown = page([content([], [broken("W1", "FAIL", 205)], violations=rows)])
    first, _, rest = shown.partition("<details><summary>4 more</summary>")
    assert "&lt;4&gt;" in first
    assert "&lt;8&gt;" in rest
    assert "W1 single writer: 205" in first


def test_what_cannot_be_judged_shows_no_counts() -> None:
    """A stranger wrote 321 times, as far as one sees without the events that name the sessions."""
    rows = [{"property": "W6", "sentence": "a stranger", "rows": []}]
    shown = page([content([], [broken("W6", "NODATA", 321)], violations=rows)])
    assert "321" not in shown
    assert "a stranger" not in shown


def test_an_axis_has_round_numbers() -> None:
    """Nobody reads 0.833 s."""
    drawn = charts.lines("x", [charts.Line("a", [(0, 1.0), (3.332, 2.0)])], [], "ms")
    assert [f">{each} s<" in drawn for each in ("0", "0.5", "3")] == [True] * 3
    assert "0.833" not in drawn
