"""The terminal view of a watched run, for 80 columns."""

from __future__ import annotations

from datetime import UTC, datetime

from rich import box
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from pipeline.watch.summary import KEPT_MS, WINDOW_MS, Boot, Summary

_BARS = "▁▂▃▄▅▆▇█"


def screen(summary: Summary) -> RenderableType:
    """Return what the terminal shows."""
    newest = datetime.fromtimestamp(summary.newest_ms / 1000, UTC).strftime("%H:%M:%S")
    parts: list[RenderableType] = [
        Text(f"run {summary.run}: {summary.lines:,} lines, the newest of {newest} UTC"),
        Text(f"controller: {_controller(summary)}"),
        _brokers(summary),
        Text(f"requests/s of all brokers, last minute: {_bars(_rates(summary))}"),
        _hops(summary),
    ]
    if summary.unreadable:
        parts.append(Text(f"{summary.unreadable:,} lines are not events.", style="red"))
    if summary.approximate:
        late = f"approximate: rates and latencies lack {summary.late:,} events that came too late"
        parts.append(Text(late, style="yellow"))
    parts.append(Text("Live figures, no verdict: `bridgehead pipeline run` judges.", style="dim"))
    return Group(*parts)


def _controller(summary: Summary) -> str:
    active = summary.controller
    if active is None:
        return "none"
    seconds = (summary.newest_ms - active.active_ms) // 1000
    return f"broker {active.node}, epoch {active.epoch}, for {seconds:,} s"


def _brokers(summary: Summary) -> Table:
    table = Table(box=box.SIMPLE, pad_edge=False)
    names = ("requests/s", "forwarded/s", "resent", "open", "oldest", "last event")
    for name in ("broker", *names):
        table.add_column(name, justify="left" if name == "broker" else "right", no_wrap=True)
    seconds = _covered_s(summary)
    waiting = {node.node: node for node in summary.open}
    for boot in _brokers_boots(summary):
        windows = [window for window in summary.windows if window.node == boot.node]
        held = waiting.get(boot.node)
        table.add_row(
            boot.node,
            f"{sum(window.received for window in windows) / seconds:,.1f}",
            f"{sum(window.forwarded for window in windows) / seconds:,.1f}",
            f"{sum(window.resent for window in windows):,}",
            f"{held.requests:,}" if held else "0",
            f"{max(summary.newest_ms - held.oldest_ms, 0) / 1000:,.1f} s" if held else "",
            "ended" if boot.ended else f"{(summary.newest_ms - boot.last_ms) / 1000:,.0f} s",
        )
    return table


def _brokers_boots(summary: Summary) -> list[Boot]:
    """Return the last boot of each broker. The names of other processes are not numbers."""
    last: dict[str, Boot] = {}
    for boot in summary.boots:
        latest = last.get(boot.node)
        if boot.node.isdecimal() and (latest is None or latest.last_ms < boot.last_ms):
            last[boot.node] = boot
    return [last[node] for node in sorted(last, key=int)]


def _covered_s(summary: Summary) -> float:
    """Return how many seconds the windows cover."""
    first = min((window.start_ms for window in summary.windows), default=summary.newest_ms)
    return max(summary.newest_ms - first, WINDOW_MS) / 1000


def _rates(summary: Summary) -> list[int]:
    """Return the number of requests in each window of the last minute."""
    newest = summary.newest_ms // WINDOW_MS * WINDOW_MS
    by_start: dict[int, int] = {}
    for window in summary.windows:
        by_start[window.start_ms] = by_start.get(window.start_ms, 0) + window.received
    starts = range(newest - KEPT_MS + WINDOW_MS, newest + WINDOW_MS, WINDOW_MS)
    return [by_start.get(start, 0) for start in starts]


def _bars(counts: list[int]) -> str:
    most = max(counts)
    bars = "".join(_BARS[-(-count * (len(_BARS) - 1) // most) if most else 0] for count in counts)
    return f"{bars} at most {most * 1000 / WINDOW_MS:,.1f}"


def _hops(summary: Summary) -> RenderableType:
    if not summary.latency:
        return Text("No forwarded request was answered in the last minute.")
    table = Table(box=box.SIMPLE, pad_edge=False)
    table.add_column("forwarded requests, last minute", no_wrap=True)
    for name in ("count", "p50 ms", "p99 ms", "max ms"):
        table.add_column(name, justify="right")
    for hop in summary.latency:
        times = (f"{us / 1000:,.2f}" for us in (hop.p50_us, hop.p99_us, hop.max_us))
        table.add_row(hop.hop, f"{hop.requests:,}", *times)
    return table
