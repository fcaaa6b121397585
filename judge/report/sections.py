"""Sections of the report, from rows: those that `judge --html` and the Spark pipeline share."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from html import escape
from typing import Any, Final

from judge.report import charts
from judge.report.failovers import failovers
from judge.report.html import mark
from judge.verdicts import VerdictRow

Rows = Sequence[Mapping[str, Any]]
_OPEN_AT_FIRST: Final = 5  # violations of each property; the others need a click


def over_time(tables: Mapping[str, Rows]) -> str:
    """Return the charts of requests and latencies over time, with the controllers and faults.

    `tables` has the rows of `timeline`, `terms` and `faults`.
    """
    rows = tables["timeline"]
    if not rows:
        return "<h2>Over time</h2><p>The run has no requests.</p>"
    zero, width = int(rows[0]["slice_ms"]), max(int(rows[0]["width_ms"]), 1)
    end_ms = int(rows[-1]["slice_ms"]) + width
    by_slice = {int(row["slice_ms"]): row for row in rows}
    slices = list(range(zero, end_ms, width))

    def series(name: str, column: str, scale: float, empty: float | None) -> charts.Line:
        points: list[tuple[float, float | None]] = []
        for at in slices:
            value = by_slice[at][column] if at in by_slice else None
            points.append(((at - zero) / 1000, empty if value is None else value * scale))
        return charts.Line(name, points)

    last_ms = max([end_ms, *(int(fault["wall_ms"]) for fault in tables["faults"])])
    bands = _bands(tables["terms"], zero, last_ms)
    marks = [
        charts.Mark((fault["wall_ms"] - zero) / 1000, f"{fault['action']} {fault['target']}")
        for fault in tables["faults"]
    ]
    rate = 1000 / width
    began = datetime.fromtimestamp(zero / 1000, UTC).strftime("%Y-%m-%d %H:%M:%S")
    return (
        f"<h2>Over time</h2><p class=quiet>Seconds since {began} UTC, in slices of {width} ms. "
        "Shaded: the terms of controllers; red: no controller. Dashed: faults.</p>"
        "<h3>Requests per second</h3>"
        + charts.lines(
            "Requests per second",
            [
                series("forwarded", "forwarded", rate, 0.0),
                series("answered by the broker", "others", rate, 0.0),
                series("resent", "resends", rate, 0.0),
                series("unfinished", "unfinished", rate, 0.0),
            ],
            bands,
            "per second",
            marks=marks,
        )
        + "<h3>Latency of forwarded requests</h3>"
        + charts.lines(
            "Latency of forwarded requests",
            [
                series("p50", "p50_us", 0.001, None),
                series("p99", "p99_us", 0.001, None),
            ],
            bands,
            "ms",
            marks=marks,
        )
    )


def _bands(rows: Rows, zero_ms: int, end_ms: int) -> list[charts.Band]:
    """Return bands for the terms of controllers, and for the time between two terms."""
    bands: list[charts.Band] = []
    terms = [term for term in rows if term["active_ms"] is not None]
    for at, term in enumerate(terms):
        following = terms[at + 1]["active_ms"] if at + 1 < len(terms) else end_ms
        ended = min(term["ended_ms"] or following, following)
        start, end = (term["active_ms"] - zero_ms) / 1000, (ended - zero_ms) / 1000
        label = f"controller {term['node']}, epoch {term['epoch']}"
        bands.append(charts.Band(start, end, label, "term-even" if at % 2 == 0 else "term-odd"))
        if at + 1 < len(terms):
            bands.append(charts.Band(end, (following - zero_ms) / 1000, "no controller", "gap"))
    return bands


def failover(terms: Rows) -> str:
    """Return the chart of the failovers, from the rows of `terms`."""
    rows = failovers(terms)
    if not rows:
        return "<h2>Failover</h2><p>The controller did not change.</p>"
    shown = rows[:30]
    left = f"<p class=quiet>{len(rows) - 30} more are not shown.</p>" if len(rows) > 30 else ""
    return (
        "<h2>Failover</h2><p class=quiet>From the end of one controller (its resignation, or the "
        "last event of its process) to the first decision of the next, without the time in which "
        "no request waited.</p>" + charts.stacks("Failover, by its parts", shown, "ms") + left
    )


def verdicts(rows: Sequence[VerdictRow]) -> str:
    """Return the verdict on each property, folded."""
    counted = Counter(row.verdict for row in rows)
    summary = " ".join(f"{mark(verdict)} {count}" for verdict, count in counted.items())
    listed = "".join(
        f"<tr{'' if row.decides else ' class=aside'}><td>{mark(row.verdict)}</td>"
        f"<td>{row.property}</td><td>{escape(row.name.replace('_', ' '))}"
        f"{f'<br><small>{escape(row.why)}</small>' if row.why else ''}</td>"
        f"{_counts(row)}</tr>"
        for row in rows
    )
    return (
        f"<h2>Properties</h2><details><summary>{summary}</summary>"
        "<table><tr><th>verdict</th><th></th><th>property</th>"
        f"<th class=n>judged</th><th class=n>violations</th></tr>{listed}</table>"
        "<p class=quiet>Pale rows do not count for the verdict on the run.</p></details>"
    )


def _counts(row: VerdictRow) -> str:
    """Return the cells of the counts. For NODATA the counts mean nothing and are not shown."""
    if row.verdict == "NODATA":
        return "<td class=n>–</td><td class=n>–</td>"
    return f"<td class=n>{row.judged:,}</td><td class=n>{row.violations:,}</td>"


def violations(rows: Sequence[VerdictRow], listed: Rows, note: str) -> str:
    """Return the violations. The first ones of each property are shown, the others folded.

    Args:
        rows: the verdicts.
        listed: the violations: `property`, `sentence` and `rows`, the evidence for it.
        note: where all violations are.
    """
    violated = [row for row in rows if row.violations and row.verdict != "NODATA"]
    parts = []
    for verdict in violated:
        items = [
            f"<tr><td>{escape(row['sentence'])}<br>"
            f"<small>{'<br>'.join(escape(text) for text in row['rows'])}</small></td></tr>"
            for row in listed
            if row["property"] == verdict.property
        ]
        parts.append(
            f"<h3>{verdict.property} {escape(verdict.name.replace('_', ' '))}: "
            f"{verdict.violations:,}</h3><table>{''.join(items[:_OPEN_AT_FIRST])}</table>"
        )
        if items[_OPEN_AT_FIRST:]:
            more = len(items) - _OPEN_AT_FIRST
            parts.append(
                f"<details><summary>{more} more</summary>"
                f"<table>{''.join(items[_OPEN_AT_FIRST:])}</table></details>"
            )
    if not parts:
        return ""
    return f"<h2>Violations</h2><p class=quiet>{escape(note)}</p>{''.join(parts)}"
