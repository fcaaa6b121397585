"""Clients and the harness write events in the same format as nodes."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest

from bridgehead.cluster import ClientHistory
from bridgehead.cluster.client_history import Operation
from bridgehead.cluster.event_lines import SCHEMA_VERSION, EventLines
from event_log import events
from judge.evidence.lines import has_unknown_fields, judge_event


def _lines(folder: Path) -> list[dict[str, Any]]:
    (path,) = folder.glob("*/events-*-0000.jsonl")
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_operation_is_recorded_before_it_is_sent_and_when_it_ends(tmp_path: Path) -> None:
    run = tmp_path / "run=r1"
    with ClientHistory(run, "load") as history, history.operation(19, ["orders"]) as operation:
        assert [line["kind"] for line in _lines(run)] == ["started", "client_invoked"]
        operation.completed({"orders": 0})
    lines = _lines(run)
    kinds = ["started", "client_invoked", "client_completed", "stopped"]
    assert [line["kind"] for line in lines] == kinds
    assert [line["seq"] for line in lines] == [0, 1, 2, 3]
    assert all(judge_event(line, "r1") == () and not has_unknown_fields(line) for line in lines)
    assert lines[1]["op_id"] == lines[2]["op_id"]


def test_failed_operation_is_completed_as_unknown(tmp_path: Path) -> None:
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
def test_outcome_is_derived_from_error_codes(codes: dict[str, int], outcome: str) -> None:
    """The outcome is unknown (`info`) without a code, or with a code such as REQUEST_TIMED_OUT."""
    operation = Operation("o1")
    operation.completed(codes)
    assert operation.outcome == outcome


@pytest.mark.parametrize(("error", "outcome"), [(0, "ok"), (62, "fail"), (7, "info")])
def test_request_without_elements_has_one_error_code(error: int, outcome: str) -> None:
    operation = Operation("o1")
    operation.completed(error=error)
    assert operation.outcome == outcome


def test_no_event_is_written_after_stopped(tmp_path: Path) -> None:
    lines = EventLines(tmp_path, "r1", "harness", "h")
    lines.close("over")
    lines.append("fault_injected", action="kill", target="1")
    lines.close("over")
    assert [line["kind"] for line in _lines(tmp_path)] == ["started", "stopped"]


def test_an_event_is_written_as_a_whole_or_not_at_all(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A full disk may take only the beginning of a line."""
    lines, write = EventLines(tmp_path, "r1", "harness", "h"), os.write
    with monkeypatch.context() as patch:
        patch.setattr(os, "write", lambda file, data: write(file, data[:9]))
        with pytest.raises(OSError, match="No space left"):
            lines.append("fault_injected", action="kill", target="1")
    lines.append("fault_injected", action="kill", target="2")
    written = _lines(tmp_path)
    assert [(line["seq"], line.get("target")) for line in written] == [(0, None), (1, "2")]


def test_a_file_is_closed_even_if_the_disk_is_full(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lines = EventLines(tmp_path, "r1", "harness", "h")
    monkeypatch.setattr(os, "write", Mock(side_effect=OSError))
    with pytest.raises(OSError):  # noqa: PT011 - as the operating system reports it
        lines.close("over")
    lines.close("over")


def test_public_package_has_the_schema_version_of_the_events() -> None:
    """The package cannot import the application tree, so it repeats the number."""
    assert SCHEMA_VERSION == events.SCHEMA_VERSION
