"""What `pipeline watch` shows: the counts of batches, the controller, and lines of 80 columns."""

from __future__ import annotations

import io
from typing import Any

import pytest
from rich.console import Console

from pipeline.watch.screen import screen
from pipeline.watch.summary import KEPT_MS, Boot, Hop, Open, Summary, summary_from_json

NOW = 1_795_422_000_000


def counts(start_ms: int, **fields: Any) -> dict[str, Any]:
    """A row of counts, as Spark returns it."""
    numbers = ("received", "responded", "forwarded", "resent", "commits", "of_requests")
    return {
        "node": "1",
        "boot": "a",
        "start_ms": start_ms,
        "last_ms": start_ms,
        "lines": 1,
        "stopped": False,
        "active": None,
        "resigned_epoch": -1,
        "ended": [],
        **dict.fromkeys(numbers, 0),
        **fields,
    }


def shown(summary: Summary) -> str:
    output = io.StringIO()
    Console(file=output, width=80).print(screen(summary))
    return output.getvalue()


def test_an_event_that_comes_too_late_counts_only_in_the_totals() -> None:
    summary = Summary(run="r")
    summary.add([counts(NOW - 10 * KEPT_MS, of_requests=1), counts(NOW, received=2)])
    assert not summary.approximate, "in the first batch nothing is late"
    assert [window.start_ms for window in summary.windows] == [NOW]
    old = NOW - KEPT_MS - 5_000
    summary.add([counts(old, lines=3, received=3, of_requests=3), counts(NOW, received=1)])
    assert (summary.late, summary.approximate) == (3, True)
    assert [(window.start_ms, window.received) for window in summary.windows] == [(NOW, 3)]
    assert (summary.boots[0].received, summary.lines) == (6, 6)
    assert "approximate: rates and latencies lack 3 events" in shown(summary)


@pytest.mark.parametrize("lacking", ["node", "boot", "start_ms"])
def test_a_line_that_lacks_a_required_field_is_unreadable(lacking: str) -> None:
    """A damaged line must not end the watch."""
    summary = Summary(run="r")
    summary.add([counts(NOW), {**counts(NOW), lacking: None}])
    assert (summary.unreadable, summary.lines, len(summary.boots)) == (1, 2, 1)


def test_the_controller_of_the_highest_epoch_is_active_until_it_stops_or_resigns() -> None:
    summary = Summary(run="r")
    summary.add([counts(NOW, active=(3, NOW))])
    summary.add([counts(NOW + 5_000, node="2", boot="b", active=(4, NOW + 5_000))])
    assert summary.controller is not None
    assert (summary.controller.node, summary.controller.epoch) == ("2", 4)
    assert "controller: broker 2, epoch 4" in shown(summary)
    summary.add([counts(NOW + 10_000, node="harness-x", boot="h", ended=[("2", "b")])])
    assert summary.controller is None
    assert "controller: none" in shown(summary)
    summary.add([counts(NOW + 15_000, active=(5, NOW + 15_000))])
    assert summary.controller is not None
    summary.add([counts(NOW + 15_000, resigned_epoch=5)])
    assert summary.controller is None


def test_a_summary_is_read_as_it_was_written() -> None:
    summary = Summary(run="r", batch=7, newest_ms=NOW, unreadable=1)
    summary.add([counts(NOW, received=2, active=(3, NOW))])
    summary.open = [Open(node="1", requests=2, oldest_ms=NOW)]
    summary.latency = [Hop(hop="total", requests=1, p50_us=1.5, p99_us=2.0, max_us=3)]
    assert summary_from_json(summary.to_json()) == summary


def test_the_view_fits_80_columns() -> None:
    summary = Summary(run="b4799a9e0a8bf6cc", newest_ms=NOW + 59_000, unreadable=12_345, late=1)
    for node in ("1", "2", "10003"):
        many = {"received": 987_654, "forwarded": 876_543, "resent": 765_432, "commits": 654_321}
        summary.add([counts(NOW, node=node, boot=node, lines=123_456_789, **many)])
    summary.boots.append(Boot(node="harness-supervisor", boot="h"))
    summary.open = [Open(node="10003", requests=123_456, oldest_ms=NOW - 3_600_000)]
    summary.latency = [
        Hop(hop=hop, requests=987_654, p50_us=99_999.5, p99_us=999_999.5, max_us=99_999_999)
        for hop in ("total", "broker to controller and back", "queue of the controller")
    ]
    text = shown(summary)
    assert max(map(len, text.splitlines())) <= 80
    assert "…" not in text, "nothing is cut off"
    assert "harness" not in text
    assert "12,345 lines are not events" in text
    assert "no verdict" in text


def test_a_run_without_requests_has_a_view() -> None:
    text = shown(Summary(run="r"))
    assert "controller: none" in text
    assert "No forwarded request was answered" in text
