"""The report's page, built from rows without Spark or files."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from event_log.evidence import Manifest, ManifestFile, RunDescription, ZooKeeperEvidence
from judge.report import charts
from judge.verdicts import Verdict, VerdictRow
from pipeline.evidence import Run
from pipeline.places import local_place
from pipeline.report.collect import QUERIES, Content
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
    run = Run(id="r", folder=local_place(Path("/r")), manifest=manifest, digest="d", missing=())
    all_rows: Mapping[str, Any] = {name: rows.get(name, []) for name in QUERIES}
    return Content(run=run, verdicts=verdicts, rows=all_rows)


def test_run_of_a_real_kafka_has_its_own_sections() -> None:
    """The run has no events, so the page omits the sections about events."""
    html = page(
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
    assert "<td>CREATE_TOPICS</td><td class=n>1,234</td><td class=n>617</td>" in html
    assert "<td class=n>205</td>" in html
    assert "zxid 124" in html
    assert "The authorizer denied no request." in html
    assert "The run has no requests." not in html


def test_run_of_nodes_has_no_sections_of_a_real_kafka() -> None:
    html = page([content([])])
    assert "The run has no requests." in html
    assert "Forwarded requests by broker" not in html


def row_of(of: str, verdict: str, violations: int) -> VerdictRow:
    return VerdictRow(
        property=of,
        name="single_writer",
        verdict=Verdict(verdict),
        judged=321,
        violations=violations,
        decides=True,
        why="",
    )


def test_page_shows_the_first_violations_and_folds_the_others() -> None:
    rows = [{"property": "W1", "sentence": f"<{at}>", "rows": ["zxid/1"]} for at in range(9)]
    html = page([content([], [row_of("W1", "FAIL", 205)], violations=rows)])
    first, _, rest = html.partition("<details><summary>4 more</summary>")
    assert "&lt;4&gt;" in first
    assert "&lt;8&gt;" in rest
    assert "W1 single writer: 205" in first


def test_property_without_data_shows_no_counts() -> None:
    """Without events, W6 knows no owner of a session and would report every write."""
    rows = [{"property": "W6", "sentence": "a session", "rows": []}]
    html = page([content([], [row_of("W6", "NODATA", 321)], violations=rows)])
    assert "321" not in html
    assert "a session" not in html


def test_axis_has_round_numbers() -> None:
    drawn = charts.lines("x", [charts.Line("a", [(0, 1.0), (3.332, 2.0)])], [], "ms")
    assert [f">{name} s<" in drawn for name in ("0", "0.5", "3")] == [True] * 3
    assert "0.833" not in drawn
