"""What a failed test shows of its cluster."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from bridgehead.cluster.failure_report import failure_text, last_lines

LOG = """\
[2026-01-02 03:04:05,678] DEBUG a detail (node)
[2026-01-02 03:04:06,678] INFO broker 7 serves (node)
[2026-01-02 03:04:07,678] WARNING a session is suspended (zookeeper_client.session)
[2026-01-02 03:04:08,678] ERROR a request failed (broker_proxy)
Traceback (most recent call last):
  ValueError
[2026-01-02 03:04:09,678] INFO broker 7 stops (node)
"""


def status(**fields: Any) -> dict[str, Any]:
    return {
        "phase": "no controller",
        "controller_id": None,
        "controller_epoch": None,
        "zookeeper_problem": None,
        "brokers": [{"id": 7, "condition": "killed"}, {"id": 8, "condition": "running"}],
        "faults": [],
        "evidence_dir": "/data/evidence/run=ab12",
        **fields,
    }


@pytest.mark.parametrize(
    ("level", "first", "count"),
    [("DEBUG", "DEBUG a detail", 7), ("INFO", "INFO broker 7 serves", 6), ("ERROR", "ERROR", 3)],
)
def test_log_lines_below_the_level_are_omitted_with_their_stack_traces(
    tmp_path: Path, level: str, first: str, count: int
) -> None:
    log = tmp_path / "node.log"
    log.write_text(LOG)
    lines = last_lines(log, level)
    assert first in lines[0]
    assert len(lines) == count
    assert "  ValueError" in lines  # It belongs to the ERROR.


def test_a_missing_log_has_no_lines(tmp_path: Path) -> None:
    assert last_lines(tmp_path / "none", "INFO") == []


def test_only_faults_since_the_beginning_of_the_test_are_shown() -> None:
    faults = [
        {"action": "stop", "target": "8", "wall_ms": 9_999},
        {"action": "kill", "target": "7", "wall_ms": 11_500},
    ]
    text = failure_text(status(faults=faults), [], {}, since_ms=10_000)
    assert "fault       kill of broker 7, 1.5 s after the start" in text
    assert "stop of broker 8" not in text
    assert "brokers     7 killed, 8 running" in text
    assert "controller  none" in text


def test_the_counts_of_a_rule_are_summed_over_the_brokers() -> None:
    rule = {"action": "error", "error": "NOT_CONTROLLER"}
    rules = [
        {"name": "rule-3", "broker": 7, "rule": rule, "hits": 2, "matches": 5},
        {"name": "rule-3", "broker": 8, "rule": rule, "hits": 1, "matches": 1},
    ]
    text = failure_text(status(controller_id=8, controller_epoch=4), rules, {}, since_ms=0)
    assert "fault rule  rule-3: 3 hits, 6 matches" in text
    assert "error=NOT_CONTROLLER" in text
    assert "controller  broker 8, epoch 4" in text


def test_the_report_fits_80_columns_and_ends_with_the_evidence() -> None:
    logs = {Path("/data/nodes/7/node.log"): ["a word " * 40]}
    lines = failure_text(status(), [], logs, since_ms=0).splitlines()
    assert max(map(len, lines)) <= 80
    assert "judge it    bridgehead judge /data/evidence/run=ab12" in lines
