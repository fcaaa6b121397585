"""The report: one HTML file without scripts or network access, in dark and light."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from html import escape
from typing import Any, Final

from judge.verdicts import VerdictRow, worst
from pipeline.report import charts
from pipeline.report.collect import VIOLATIONS_SHOWN_MAX, Content
from pipeline.report.failovers import failovers
from pipeline.report.html import cells, document, mark, table
from pipeline.report.kafka_part import kafka
from pipeline.report.names import api_name

_OPEN_AT_FIRST: Final = 5  # violations of each property; the others need a click
_HOPS: Final = (
    *("total", "broker to controller", "queue of the controller", "decision and commit"),
    *("broker to controller and back", "ZooKeeper"),
)


def page(contents: Sequence[Content]) -> str:
    """Return the report on runs."""
    sections = "".join(_run(content) for content in contents)
    head = ""
    if len(contents) > 1:
        links = (
            [
                f'<a href="#{escape(content.run.id)}">{escape(content.run.id)}</a>',
                mark(worst(content.verdicts)),
            ]
            for content in contents
        )
        head = "<h1>Runs</h1>" + table(("run", "verdict"), links, raw=True)
    title = f"Bridgehead: {', '.join(content.run.id for content in contents[:3])}"
    return document(title, head + sections)


def _run(content: Content) -> str:
    run = content.run
    recorded = run.manifest.run
    facts = {
        "scenario": recorded.scenario or "none",
        "seed": "none" if recorded.seed is None else str(recorded.seed),
        "versions": ", ".join(f"{k} {v}" for k, v in sorted(recorded.versions.items()))
        or "unknown",
        "evidence": f"{run.folder} (digest {run.digest})",
        "repeat with": f"bridgehead pipeline run --evidence {run.folder} --out DIR",
    }
    is_of_kafka = any(file.kind.startswith("kafka_") for file in run.manifest.files)
    cells = ([name, f"<code>{escape(value)}</code>"] for name, value in facts.items())
    return (
        f'<section id="{escape(run.id)}"><h1>{mark(worst(content.verdicts))} '
        f"run {escape(run.id)}</h1>"
        + table(("", ""), cells, raw=True)
        + _verdicts(content)
        + _violations(content)
        + (_of_events(content) if content.rows["timeline"] or not is_of_kafka else "")
        + (kafka(content) if is_of_kafka else "")
        + _lines(content)
        + "</section>"
    )


def _of_events(content: Content) -> str:
    return (
        _over_time(content)
        + _hops(content)
        + _failovers(content)
        + _effects(content)
        + _rejections(content)
        + _forwarding(content)
    )


def _verdicts(content: Content) -> str:
    rows = "".join(
        f"<tr{'' if row.decides else ' class=aside'}><td>{mark(row.verdict)}</td>"
        f"<td>{row.property}</td><td>{escape(row.name.replace('_', ' '))}"
        f"{f'<br><small>{escape(row.why)}</small>' if row.why else ''}</td>"
        f"{_counts(row)}</tr>"
        for row in content.verdicts
    )
    return (
        "<h2>Properties</h2><table><tr><th>verdict</th><th></th><th>property</th>"
        f"<th class=n>judged</th><th class=n>violations</th></tr>{rows}</table>"
        "<p class=quiet>Pale rows do not count for the verdict on the run.</p>"
    )


def _counts(row: VerdictRow) -> str:
    """Return the cells of the counts. For NODATA the counts mean nothing and are not shown."""
    if row.verdict == "NODATA":
        return "<td class=n>–</td><td class=n>–</td>"
    return f"<td class=n>{row.judged:,}</td><td class=n>{row.violations:,}</td>"


def _violations(content: Content) -> str:
    violated = [row for row in content.verdicts if row.violations and row.verdict != "NODATA"]
    parts = []
    for verdict in violated:
        items = [
            f"<tr><td>{escape(row['sentence'])}<br>"
            f"<small>{'<br>'.join(escape(text) for text in row['rows'])}</small></td></tr>"
            for row in content.rows["violations"]
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
    return (
        f"<h2>Violations</h2><p class=quiet>At most {VIOLATIONS_SHOWN_MAX} of each property; "
        f"the table gold/violations (option --tables) has all of them.</p>{''.join(parts)}"
    )


def _seconds(rows: Sequence[Mapping[str, Any]]) -> int:
    return int(rows[0]["slice_ms"]) if rows else 0


def _bands(content: Content, zero_ms: int, end_ms: int) -> list[charts.Band]:
    """Return bands for the terms of controllers, and for the time between two terms."""
    bands: list[charts.Band] = []
    terms = [term for term in content.rows["terms"] if term["active_ms"] is not None]
    for at, term in enumerate(terms):
        following = terms[at + 1]["active_ms"] if at + 1 < len(terms) else end_ms
        ended = min(term["ended_ms"] or following, following)
        start, end = (term["active_ms"] - zero_ms) / 1000, (ended - zero_ms) / 1000
        label = f"controller {term['node']}, epoch {term['epoch']}"
        bands.append(charts.Band(start, end, label, "term-even" if at % 2 == 0 else "term-odd"))
        if at + 1 < len(terms):
            bands.append(charts.Band(end, (following - zero_ms) / 1000, "no controller", "gap"))
    return bands


def _over_time(content: Content) -> str:
    rows = content.rows["timeline"]
    if not rows:
        return "<h2>Over time</h2><p>The run has no requests.</p>"
    zero, width = _seconds(rows), max(int(rows[0]["width_ms"]), 1)
    end_ms = int(rows[-1]["slice_ms"]) + width
    by_slice = {int(row["slice_ms"]): row for row in rows}
    slices = list(range(zero, end_ms, width))

    def series(name: str, column: str, scale: float, empty: float | None) -> charts.Line:
        points: list[tuple[float, float | None]] = []
        for at in slices:
            value = by_slice[at][column] if at in by_slice else None
            points.append(((at - zero) / 1000, empty if value is None else value * scale))
        return charts.Line(name, points)

    bands = _bands(content, zero, end_ms)
    rate = 1000 / width
    began = datetime.fromtimestamp(zero / 1000, UTC).strftime("%Y-%m-%d %H:%M:%S")
    return (
        f"<h2>Over time</h2><p class=quiet>Seconds since {began} UTC, in slices of {width} ms. "
        "Shaded: the terms of controllers; red: no controller.</p><h3>Requests per second</h3>"
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
        )
    )


def _hops(content: Content) -> str:
    rows = [row for row in content.rows["latency"] if row["route"] in ("FORWARD", "COMMIT")]
    if not rows:
        return ""
    shown = []
    for hop in _HOPS:
        # The chart shows the API with the most requests; the table has all APIs.
        of_hop = [row for row in rows if row["hop"] == hop]
        if of_hop:
            most = max(of_hop, key=lambda row: int(row["requests"]))
            label = hop if hop == "ZooKeeper" else f"{hop} ({api_name(most['api_key'])})"
            values = {"p50": most["p50_us"] / 1000, "p99": most["p99_us"] / 1000}
            shown.append((label, values))
    listed = table(
        ("API", "route", "hop", "requests", "p50 ms", "p90 ms", "p99 ms", "max ms"),
        (
            (
                api_name(row["api_key"]),
                *cells(row, "route hop requests"),
                *(f"{us / 1000:.2f}" for us in cells(row, "p50_us p90_us p99_us max_us")),
            )
            for row in content.rows["latency"]
        ),
        numbers=5,
    )
    images = table(
        ("broker", "images", "p50 ms", "p99 ms", "max ms"),
        (
            (
                *cells(row, "node requests"),
                *(f"{us / 1000:.2f}" for us in cells(row, "p50_us p99_us max_us")),
            )
            for row in content.rows["propagation"]
        ),
        numbers=4,
    )
    return (
        "<h2>Latency by hop</h2>"
        + charts.bars("Latency by hop", shown, "ms")
        + f"<details><summary>All APIs and hops (exact percentiles)</summary>{listed}</details>"
        + "<h3>From a commit to the image of each broker</h3>"
        + images
    )


def _failovers(content: Content) -> str:
    rows = failovers(content.rows["terms"])
    if not rows:
        return "<h2>Failover</h2><p>The controller did not change.</p>"
    shown = rows[:30]
    left = f"<p class=quiet>{len(rows) - 30} more are not shown.</p>" if len(rows) > 30 else ""
    return (
        "<h2>Failover</h2><p class=quiet>From the end of one controller (its resignation, or the "
        "last event of its process) to the first decision of the next.</p>"
        + charts.stacks("Failover, by its parts", shown, "ms")
        + left
    )


def _effects(content: Content) -> str:
    cells = {
        (row["response"], row["effect"]): int(row["elements"]) for row in content.rows["effects"]
    }
    names = {"ok": "acknowledged", "fail": "rejected", "info": "no definite response"}
    effects = {"none": "no effect", "once": "one effect", "twice": "two effects"}
    wrong = [
        (names["ok"], effects["none"]),
        (names["fail"], effects["once"]),
        *((response, effects["twice"]) for response in names.values()),
    ]
    counts = {
        (names[response], effects[effect]): count for (response, effect), count in cells.items()
    }
    return (
        "<h2>Responses and effects</h2><p class=quiet>A green frame marks a count that must be 0 "
        "and is 0. (A deletion has no effect if another request already deletes the topic.)</p>"
        + charts.matrix(
            "Response and effect", list(names.values()), list(effects.values()), counts, wrong
        )
    )


def _rejections(content: Content) -> str:
    rows = content.rows["rejections"]
    if not rows:
        return "<h2>Rejections</h2><p>No request was rejected.</p>"
    shown = [
        (
            row["principal"],
            {"rejected": float(row["rejections"]), "not authorized": float(row["denials"])},
        )
        for row in rows[:15]
    ]
    return "<h2>Rejections by principal</h2>" + charts.bars("Rejections by principal", shown, "")


def _forwarding(content: Content) -> str:
    shares = table(
        ("broker", "requests", "forwarded", "redirected", "share", "resent", "unfinished"),
        (
            (
                *cells(row, "node requests forwarded redirected"),
                f"{row['redirected'] / row['requests']:.1%}" if row["requests"] else "",
                *cells(row, "resends unfinished"),
            )
            for row in content.rows["shares"]
        ),
        numbers=6,
    )
    counters = table(
        ("counter", "node", "last value", "events", "snapshots", "wrong snapshots"),
        (
            (
                *cells(row, "counter node"),
                f"{row['shown']:,.0f}",
                *cells(row, "counted snapshots different"),
            )
            for row in content.rows["counters"]
        ),
        numbers=4,
    )
    software = table(
        ("client", "version", "versions of write APIs", "connections", "requests"),
        (
            (
                *cells(row, "name version"),
                _writes(row["writes"]),
                *cells(row, "connections requests"),
            )
            for row in content.rows["software"]
        ),
        numbers=2,
    )
    return (
        f"<h2>Forwarding</h2>{shares}<h3>Counters and their events</h3>{counters}"
        f"<h3>Clients and their versions</h3>{software}"
    )


def _writes(text: str) -> str:
    parts = (part.partition(" ") for part in text.split(", ") if part)
    return ", ".join(f"{api_name(int(key))} {versions}" for key, _, versions in parts)


def _lines(content: Content) -> str:
    rows = content.rows["accounting"]
    names = ("sealed", "accepted", "quarantined", "duplicates", "two_writers", "blank", "cut")
    listed = table(
        ("file", "sealed", "accepted", "quarantined", "duplicates", "two writers", "blank", "cut"),
        (
            (
                row["file"] + ("" if row["is_there"] else " (gone)"),
                *(row[name] for name in names),
            )
            for row in rows[:60]
        ),
        numbers=7,
    )
    aside = table(
        ("fate", "reasons", "first place", "example", "lines"),
        (cells(row, "fate reasons first_place example lines") for row in content.rows["set_aside"]),
        numbers=1,
    )
    left = f"<p class=quiet>{len(rows) - 60} more files.</p>" if len(rows) > 60 else ""
    set_aside = f"<h3>Set aside</h3>{aside}" if content.rows["set_aside"] else ""
    return f"<h2>Lines</h2>{listed}{left}{set_aside}"
