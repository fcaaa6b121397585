"""The report as one HTML file without any other file, script or font."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from html import escape
from pathlib import Path
from typing import Final

from bridgehead.cluster.data_directory import write_private
from rehearse.compare import Comparison, Fate
from rehearse.metadata import Kind
from rehearse.report.document import PAGE, Phase, Report, errors_of, verdict_on_writes

# A browser shows more rows slowly; `report.json` has all of them.
_ROWS_MAX: Final = 1_000
_COLORS: Final = ("#4e79a7", "#f28e2b", "#59a14f", "#e15759", "#76b7b2", "#edc948", "#9c755f")
_STYLE: Final = """
:root { color-scheme: light dark; --line: #8884; --good: #2a7d3f; --bad: #c0392b; }
body { font: 15px/1.5 system-ui, sans-serif; max-width: 62rem; margin: 2rem auto; padding: 0 1rem; }
h1 { font-size: 1.5rem } h2 { margin-top: 2.2rem; font-size: 1.2rem }
table { border-collapse: collapse; width: 100%; margin: .6rem 0 }
th, td { text-align: left; vertical-align: top; padding: .25rem .6rem .25rem 0;
  border-bottom: 1px solid var(--line); overflow-wrap: anywhere }
td.n, th.n { text-align: right; white-space: nowrap }
th, .names td:first-child { overflow-wrap: normal; white-space: nowrap }
@media (max-width: 700px) { table { display: block; overflow-x: auto } }
.verdict { padding: .7rem 1rem; border-left: 5px solid var(--good); background: #8881 }
.verdict.bad { border-color: var(--bad) } .bad { color: var(--bad); font-weight: 600 }
.bar { display: flex; height: 1.1rem; margin: .5rem 0; border-radius: 3px; overflow: hidden }
.bar span { min-width: 2px } .key { display: inline-block; width: .8rem; height: .8rem;
  border-radius: 2px; margin-right: .4rem }
code, pre { font: 13px/1.5 ui-monospace, monospace }
pre { background: #8881; padding: .6rem 1rem; overflow-x: auto }
details summary { cursor: pointer; margin: .4rem 0 }
"""


def write_page(folder: Path, report: Report) -> None:
    """Write the page beside `report.json`."""
    write_private(folder / PAGE, page_of(report).encode())


def page_of(report: Report) -> str:
    """Return the page."""
    body = "\n".join(_body(report))
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>Rehearsal: {escape(report.source)}</title><style>{_STYLE}</style></head>"
        f"<body>\n{body}\n</body></html>\n"
    )


def _body(report: Report) -> Iterator[str]:
    yield "<h1>From ZooKeeper to KRaft: a rehearsal</h1>"
    yield from _verdict(report)
    yield "<h2>Phases</h2>"
    for phase in report.phases:
        yield from _phase(phase)
    yield from _load(report)
    yield from _records(report)
    for phase in report.phases:
        for comparison in phase.comparisons:
            yield from _comparison(comparison)
    yield from _findings(report)
    yield from _changes(report)
    yield "<h2>Next steps for the cluster</h2>"
    yield from _steps(report)


def _verdict(report: Report) -> Iterator[str]:
    is_rollback = report.until == "rollback"
    what = "rollback" if is_rollback else "migration"
    reached = "" if is_rollback else f" until {report.until}"
    if report.outcome != "completed":
        text = f"The {what} {report.outcome}: {report.why}"
    elif report.is_good:
        text = f"The {what} completed{reached}. Every difference is explained."
    else:
        text = (
            f"The {what} completed{reached}, but not everything is right: "
            f"{report.unexplained} unexplained differences, {len(report.lost)} missing writes, "
            f"{report.lost_records} lost records."
        )
    yield f'<p class="verdict{"" if report.is_good else " bad"}">{escape(text)}</p>'
    rows = [
        ("source", report.source),
        ("Kafka", f"{report.kafka}, level {report.level}"),
        ("brokers", ", ".join(map(str, report.brokers))),
        ("controllers", ", ".join(map(str, report.controllers))),
        ("znodes", f"{report.znodes:,}"),
        ("not rehearsed", f"{report.hidden:,} znodes (secrets, rights)" if report.hidden else ""),
        ("time", f"{report.seconds:.0f} s"),
        ("memory", ", ".join(f"{name}: {mib} MiB" for name, mib in report.memory_mib.items())),
    ]
    if report.zxid_before is not None and report.zxid_after is not None:
        zxids = f"0x{report.zxid_before:x} before, 0x{report.zxid_after:x} after"
        others = report.others_wrote
        count = "an unknown number" if others is None else f"{others:,}"
        rows.append(
            ("source's zxid", f"{zxids}: 2 transactions of this command, {count} of others")
        )
    yield _table((), [[name, value] for name, value in rows if value], are_names=True)


def _phase(phase: Phase) -> Iterator[str]:
    took = "did not end" if phase.seconds is None else f"{phase.seconds:.1f} s"
    began = datetime.fromtimestamp(phase.began_s, UTC).strftime("%H:%M:%S UTC")
    yield f"<h3>{escape(phase.name)} <small>{began}, {took}</small></h3>"
    if phase.gap_s is not None:
        yield f"<p>No controller could write for <b>{phase.gap_s:.2f} s</b>.</p>"
    pairs = list(zip(phase.transitions, phase.transitions[1:], strict=False))
    if not pairs:
        return
    bar, rows = [], []
    for number, (before, after) in enumerate(pairs):
        seconds = max(0.0, after.time_s - before.time_s)
        color = _COLORS[number % len(_COLORS)]
        title = f"{before.state}: {seconds:.2f} s"
        style = f"flex:{seconds:.3f} 0 2px;background:{color}"
        bar.append(f'<span style="{style}" title="{escape(title)}"></span>')
        key = f'<span class="key" style="background:{color}"></span>'
        rows.append(f'<tr><td>{key}{before.state}</td><td class="n">{seconds:.2f} s</td></tr>')
    rows.append(f"<tr><td>{pairs[-1][1].state}</td><td></td></tr>")
    yield f'<div class="bar">{"".join(bar)}</div><table>{"".join(rows)}</table>'


def _load(report: Report) -> Iterator[str]:
    loads = [phase.load for phase in report.phases if phase.load is not None]
    if loads:
        yield "<h2>What clients saw</h2>"
        yield _table(
            ("phase", "acknowledged", "longest wait", "longest request", "errors"),
            [
                [
                    load.phase,
                    f"{load.acknowledged:,}",
                    f"{load.longest_gap_s:.2f} s",
                    f"{load.longest_request_s:.2f} s",
                    errors_of(load.errors),
                ]
                for load in loads
            ],
            are_names=True,
        )
    if report.verdict is not None:
        yield f"<p>{escape(verdict_on_writes(report.verdict))}</p>"
    if report.lost:
        yield '<h2 class="bad">Acknowledged writes that are missing</h2>'
        yield _table((), [[sentence] for sentence in report.lost[:_ROWS_MAX]])
    if report.faults:
        yield "<h2>Faults</h2>"
        yield _table(
            ("fault", "it hit", "it left", "complete after"),
            [
                [f.fault, f.hit, f.left, "–" if f.recovered_s is None else f"{f.recovered_s:.1f} s"]
                for f in report.faults
            ],
        )


def _records(report: Report) -> Iterator[str]:
    loads = [phase.record_load for phase in report.phases if phase.record_load is not None]
    if loads:
        yield "<h2>Records</h2>"
        head = ("phase", "acknowledged", "consumed", "lost", "longest wait", "consumer's", "errors")
        yield _table(
            head,
            [
                [
                    load.phase,
                    f"{load.acknowledged:,}",
                    f"{load.consumed:,}",
                    "unknown" if load.lost is None else f"{load.lost:,}",
                    f"{load.longest_wait_s:.2f} s",
                    f"{load.longest_silence_s:.2f} s",
                    errors_of(load.errors),
                ]
                for load in loads
            ],
            are_names=True,
        )


def _comparison(comparison: Comparison) -> Iterator[str]:
    yield f"<h2>{escape(comparison.name)}</h2>"
    yield _table(
        ("kind", *Fate),
        [
            [
                kind,
                *(
                    f"{count:,}" if (count := comparison.of_kind(kind, fate)) else ""
                    for fate in Fate
                ),
            ]
            for kind in Kind
            if any(comparison.of_kind(kind, fate) for fate in Fate)
        ],
    )
    if not comparison.differences:
        return
    shown = sorted(comparison.differences, key=lambda difference: bool(difference.why))
    unexplained = len(comparison.unexplained)
    noun = "difference" if len(shown) == 1 else "differences"
    word = f"{len(shown):,} {noun}, {unexplained:,} unexplained"
    yield f"<details{' open' if unexplained else ''}><summary>{word}</summary>"
    rows = [
        [str(d.item), d.fate, d.before, d.after, d.why or "UNEXPLAINED"] for d in shown[:_ROWS_MAX]
    ]
    yield _table(("item", "fate", "before", "after", "why"), rows)
    if len(shown) > _ROWS_MAX:
        yield f"<p>report.json has {len(shown) - _ROWS_MAX:,} more.</p>"
    yield "</details>"


def _findings(report: Report) -> Iterator[str]:
    if report.findings:
        yield "<h2>Findings of the scan</h2>"
        yield _table(
            ("finding", "where", f"Kafka {report.kafka}", "this rehearsal", "remedy"),
            [
                [f"{f.rule}: {f.what}", f.where, f.outcome, f.seen or "nothing differs", f.remedy]
                for f in report.findings[:_ROWS_MAX]
            ],
        )


def _changes(report: Report) -> Iterator[str]:
    if report.writes:
        yield "<h2>What the controller wrote to ZooKeeper in its syncs</h2>"
        yield _table((), [[kind, f"{count:,}"] for kind, count in sorted(report.writes.items())])
    if report.changes:
        yield "<h2>Znodes that the controller created or removed</h2>"
        yield _table(("znode", ""), [[c.path, c.what] for c in report.changes[:_ROWS_MAX]])
    if report.notices:
        yield "<h2>What the controller said about lost or changed items</h2>"
        yield f"<pre>{escape(chr(10).join(report.notices[:_ROWS_MAX]))}</pre>"


def _steps(report: Report) -> Iterator[str]:
    diff: list[str] = []
    for step in report.steps:
        if step.startswith(("+ ", "- ")):
            diff.append(step)
            continue
        if diff:
            yield f"<pre>{escape(chr(10).join(diff))}</pre>"
            diff = []
        yield f"<p>{escape(step)}</p>"
    if diff:
        yield f"<pre>{escape(chr(10).join(diff))}</pre>"


def _table(head: tuple[str, ...], rows: list[list[str]], *, are_names: bool = False) -> str:
    """Return a table. `are_names`: the first column has short names, which are not broken."""
    top = "".join(f"<th>{escape(name)}</th>" for name in head)
    body = "".join(
        "<tr>" + "".join(f"<td>{escape(str(cell))}</td>" for cell in row) + "</tr>" for row in rows
    )
    opening = '<table class="names">' if are_names else "<table>"
    return f"{opening}{f'<tr>{top}</tr>' if top else ''}{body}</table>"
