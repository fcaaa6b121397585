"""What workloads and the harness write down has the form of the nodes' own events."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from bridgehead.cluster import ClientHistory
from bridgehead.cluster.client_history import Operation
from bridgehead.cluster.event_lines import SCHEMA_VERSION, EventLines
from chaos.evidence.lines import has_unknown_fields, judge_event
from event_log import events


def _lines(folder: Path) -> list[dict[str, Any]]:
    (path,) = folder.glob("*/events-*-0000.jsonl")
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_an_operation_is_written_before_it_is_sent_and_when_it_has_ended(tmp_path: Path) -> None:
    """The lines are events of this run, with a sequence of their own and an end."""
    run = tmp_path / "run=r1"
    with ClientHistory(run, "load") as history, history.operation(19, ["orders"]) as operation:
        assert [line["kind"] for line in _lines(run)] == ["started", "client_invoked"]
        operation.told({"orders": 0})
    lines = _lines(run)
    kinds = ["started", "client_invoked", "client_completed", "stopped"]
    assert [line["kind"] for line in lines] == kinds
    assert [line["seq"] for line in lines] == [0, 1, 2, 3]
    assert all(judge_event(line, "r1") == () and not has_unknown_fields(line) for line in lines)
    assert lines[1]["op_id"] == lines[2]["op_id"]


def test_an_operation_that_breaks_off_is_completed_as_unknown(tmp_path: Path) -> None:
    """Whoever waited in vain cannot say what became of it."""
    history = ClientHistory(tmp_path / "run=r1", "load")
    with pytest.raises(TimeoutError), history.operation(19, ["orders"]):
        raise TimeoutError
    assert _lines(tmp_path / "run=r1")[-1]["outcome"] == "info"


@pytest.mark.parametrize(
    ("codes", "outcome"),
    [
        ({}, "info"),
        ({"a": 0, "b": 0}, "ok"),
        ({"a": 0, "b": 36}, "fail"),
        ({"a": 36, "b": 7}, "info"),
        ({"a": -1}, "info"),
        ({"a": 41}, "info"),
    ],
)
def test_codes_make_an_outcome(codes: dict[str, int], outcome: str) -> None:
    """REQUEST_TIMED_OUT and its like decide nothing; everything else is a definite no."""
    operation = Operation("o1")
    operation.told(codes)
    assert operation.outcome == outcome


def test_nothing_is_written_after_the_end(tmp_path: Path) -> None:
    """A thread that comes late does not write behind `stopped`."""
    lines = EventLines(tmp_path, "r1", "harness", "h")
    lines.close("over")
    lines.append("fault_injected", action="kill", target="1")
    lines.close("over")
    assert [line["kind"] for line in _lines(tmp_path)] == ["started", "stopped"]


def test_the_public_package_writes_the_schema_of_the_events() -> None:
    """It cannot import the application tree, so the number stands twice."""
    assert SCHEMA_VERSION == events.SCHEMA_VERSION
