"""The report: one HTML file without scripts or network access, in dark and light."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from typing import Final

from judge.report import charts, sections
from judge.report.html import cells, document, mark, table
from judge.report.names import api_name
from judge.verdicts import worst
from pipeline.report.collect import VIOLATIONS_SHOWN_MAX, Content
from pipeline.report.kafka_part import kafka

_ALL_VIOLATIONS: Final = (
    f"At most {VIOLATIONS_SHOWN_MAX} of each property; the table gold/violations (option "
    "--tables) has all of them."
)
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
    has_events = bool(content.rows["timeline"]) or not is_of_kafka
    cells = ([name, f"<code>{escape(value)}</code>"] for name, value in facts.items())
    return (
        f'<section id="{escape(run.id)}"><h1>{mark(worst(content.verdicts))} '
        f"run {escape(run.id)}</h1>"
        + table(("", ""), cells, raw=True)
        + (sections.over_time(content.rows) if has_events else "")
        + sections.verdicts(content.verdicts)
        + sections.violations(content.verdicts, content.rows["violations"], _ALL_VIOLATIONS)
        + (_of_events(content) if has_events else "")
        + (kafka(content) if is_of_kafka else "")
        + _lines(content)
        + "</section>"
    )


def _of_events(content: Content) -> str:
    return (
        _hops(content)
        + sections.failover(content.rows["terms"])
        + _effects(content)
        + _rejections(content)
        + _forwarding(content)
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
