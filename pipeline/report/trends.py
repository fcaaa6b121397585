"""The page of `pipeline trends`: the figures of many runs, and the runs where they changed."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from html import escape
from pathlib import Path
from typing import Final

from pipeline.folders import OutputError
from pipeline.report import charts
from pipeline.report.figures import FIGURES, Figures, figures_from_json
from pipeline.report.html import document, mark, table

BEFORE: Final = 5  # the number of earlier runs with which a run is compared
FACTOR: Final = 1.25
_STACKS_MAX: Final = 40
_SIGNS: Final = {"PASS": "✓", "FAIL": "✗"}


@dataclass(frozen=True, slots=True)
class Change:
    """A figure of one run that differs from the figures of the runs before it."""

    at: int  # index of the run
    what: str
    before: str
    now: str


def trends(runs: Sequence[Figures]) -> str:
    """Return the page; the runs are in order."""
    changes = sorted([*verdict_changes(runs), *time_changes(runs)], key=lambda change: change.at)
    first, last = _day(runs[0]), _day(runs[-1])
    body = (
        f"<h1>Runs over time: {len(runs)}</h1><p class=quiet>{first} to {last} UTC, in the order "
        f"of their start.</p>{_changes(runs, changes)}{_runs(runs)}{_properties(runs)}"
        f"{_failovers(runs, changes)}{_hops(runs, changes)}"
    )
    return document("Bridgehead: trends", body)


def verdict_changes(runs: Sequence[Figures]) -> list[Change]:
    """Return where the verdict on a property differs from the previous one."""
    changes = []
    last: dict[str, str] = {}
    for at, run in enumerate(runs):
        for of, verdict in run.properties.items():
            if last.get(of, verdict) != verdict:
                changes.append(Change(at, f"{of} {run.names[of]}", last[of], verdict))
            last[of] = verdict
    return changes


def time_changes(runs: Sequence[Figures]) -> list[Change]:
    """Return the times that are far above or below the times before them; see `leaps`."""
    return [
        Change(at, name, f"{charts.number(before)} ms", f"{charts.number(now)} ms")
        for name, values in _times(runs).items()
        for at, before, now in leaps(values)
    ]


def leaps(values: Sequence[float | None]) -> list[tuple[int, float, float]]:
    """Return index, bound and value of each value that is far above or below those before it.

    Only the last `BEFORE` values before it count. The value is more than `FACTOR` times the highest
    of them, or less than the lowest divided by `FACTOR`. The bound is this highest or lowest value.
    """
    result = []
    for at, value in enumerate(values):
        earlier = [number for number in values[max(at - BEFORE, 0) : at] if number is not None]
        if value is None or not earlier:
            continue
        if value > max(earlier) * FACTOR:
            result.append((at, max(earlier), value))
        elif value * FACTOR < min(earlier):
            result.append((at, min(earlier), value))
    return result


def _times(runs: Sequence[Figures]) -> dict[str, list[float | None]]:
    """Return the times of the runs in milliseconds, by name; None: a run lacks this time."""
    parts = dict.fromkeys(name for run in runs for name in run.failover_ms)
    hops = dict.fromkeys(name for run in runs for name in run.hops)
    times = {f"failover: {name}": [run.failover_ms.get(name) for run in runs] for name in parts}
    for name in hops:
        for short, key in (("p50", "p50_us"), ("p99", "p99_us")):
            times[f"{name}, {short}"] = [
                run.hops[name][key] / 1000 if name in run.hops else None for run in runs
            ]
    return times


def _day(run: Figures) -> str:
    return datetime.fromtimestamp(run.started_ms / 1000, UTC).strftime("%Y-%m-%d %H:%M")


def _changes(runs: Sequence[Figures], changes: Sequence[Change]) -> str:
    rule = (
        "A verdict is compared with the last one on the same property. A time has changed if it is "
        f"more than {FACTOR:g} times the highest time of the {BEFORE} runs before it, or less than "
        f"the lowest of these times divided by {FACTOR:g}. "
        "Runs on a busy machine are slower."
    )
    if not changes:
        return f"<h2>What changed</h2><p>Nothing.</p><p class=quiet>{rule}</p>"
    rows = (
        (_name(change.at, runs[change.at]), change.what, change.before, change.now)
        for change in changes
    )
    listed = table(("run", "figure", "before", "now"), rows, numbers=2)
    return f"<h2>What changed</h2>{listed}<p class=quiet>{rule}</p>"


def _name(at: int, run: Figures) -> str:
    return f"{at + 1}: {run.run}"


def _runs(runs: Sequence[Figures]) -> str:
    rows = (
        (
            escape(_name(at, run)),
            _day(run),
            escape(run.version),
            escape(run.scenario or "none"),
            "" if run.seed is None else str(run.seed),
            mark(run.verdict),
            str(run.failovers),
        )
        for at, run in enumerate(runs)
    )
    heads = ("run", "started", "version", "scenario", "seed", "verdict", "failovers")
    return f"<h2>Runs</h2>{table(heads, rows, raw=True, numbers=1)}"


def _properties(runs: Sequence[Figures]) -> str:
    """List the properties with a failed or undecided run, with a sign for each run."""
    names = {of: name for run in runs for of, name in run.names.items()}
    rows = []
    for of in sorted(names, key=lambda name: (name[0], int(name[1:]))):
        verdicts = [run.properties.get(of) for run in runs]
        if set(verdicts) <= {"PASS", None}:
            continue
        signs = "".join(
            f'<span class="{verdict or "NODATA"}" title="run {at}: {verdict or "NODATA"}">'
            f"{'·' if verdict is None else _SIGNS.get(verdict, '?')}</span>"
            for at, verdict in enumerate(verdicts, start=1)
        )
        rows.append((f"{of} {escape(names[of].replace('_', ' '))}", signs))
    if not rows:
        return "<h2>Properties</h2><p>No property failed or was undecided in any run.</p>"
    return (
        "<h2>Properties</h2><p class=quiet>One sign for each run: ✓ PASS, ✗ FAIL, "
        "? another verdict, · nothing to judge. "
        "Properties without a failed or undecided run are not listed.</p>"
        + table(("property", "runs"), rows, raw=True)
    )


def _failovers(runs: Sequence[Figures], changes: Sequence[Change]) -> str:
    changed = {change.at for change in changes if change.what.startswith("failover: ")}
    rows = [
        (f"{'* ' if at in changed else ''}{_name(at, run)}", list(run.failover_ms.items()))
        for at, run in enumerate(runs)
        if run.failovers
    ]
    if not rows:
        return "<h2>Failover</h2><p>No run has a failover.</p>"
    left = len(rows) - _STACKS_MAX
    more = f"<p class=quiet>The last {_STACKS_MAX} of {len(rows)} runs.</p>" if left > 0 else ""
    return (
        f"<h2>Failover</h2><p class=quiet>The median of each part over the failovers of a run. "
        f"*: a part has changed.</p>"
        f"{charts.stacks('Failover by run', rows[-_STACKS_MAX:], 'ms')}{more}"
    )


def _hops(runs: Sequence[Figures], changes: Sequence[Change]) -> str:
    parts = []
    times = _times(runs)
    for name in dict.fromkeys(name for run in runs for name in run.hops):
        series = [
            charts.Line(short, [(at, value) for at, value in enumerate(times[key], start=1)])
            for short, key in (("p50", f"{name}, p50"), ("p99", f"{name}, p99"))
        ]
        changed = {change.at for change in changes if change.what.startswith(f"{name}, ")}
        bands = [
            charts.Band(at + 0.6, at + 1.4, f"run {at + 1} changed it", "gap")
            for at in sorted(changed)
        ]
        parts.append(f"<h3>{escape(name)}</h3>{charts.lines(name, series, bands, 'ms', x_unit='')}")
    if not parts:
        return "<h2>Latency by hop</h2><p>No run has a forwarded request.</p>"
    return (
        "<h2>Latency by hop</h2><p class=quiet>For the API with the most forwarded requests; the "
        "horizontal axis shows the number of the run. Red: a run in which the latency changed.</p>"
        f"{''.join(parts)}"
    )


# The command `pipeline trends`: a page on the figures of many runs.


def write_trends(folders: Iterable[Path], page: Path) -> int:
    """Write the page on the runs of these output folders; return the number of runs.

    Raises:
        OutputError: a folder has no figures, or the page cannot be written.
    """
    runs: dict[str, Figures] = {}
    for folder in folders:
        path = folder / FIGURES
        try:
            stored = figures_from_json(path.read_text(encoding="utf-8"))
        except FileNotFoundError:
            raise OutputError(
                f"{folder} has no {FIGURES}: name a folder that `pipeline run --out` wrote."
            ) from None
        except (OSError, ValueError) as error:
            raise OutputError(f"{path} cannot be read: {error}.") from error
        runs.update((run.run, run) for run in stored)
    in_order = sorted(runs.values(), key=lambda run: (run.started_ms, run.run))
    try:
        page.write_text(trends(in_order), encoding="utf-8")
    except OSError as error:
        raise OutputError(f"{page} cannot be written ({error.strerror}).") from error
    return len(in_order)
