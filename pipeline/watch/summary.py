"""What is known about a watched run, as `pipeline watch` shows and prints it.

The counts of a boot include all its lines, however late they are. Windows and latencies cover the
last minute, extended back to the start of a window. An event is too late for them if it is older
than this minute of the previous batch. If such an event belongs to a request or commit, it is
counted in `late`, and the summary is approximate.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Final

SCHEMA_VERSION: Final = 1
WINDOW_MS: Final = 5_000
KEPT_MS: Final = 60_000


@dataclass(slots=True, kw_only=True)
class Boot:
    """One boot, which is the life of one process, with the counts of all its events."""

    node: str
    boot: str
    lines: int = 0
    received: int = 0
    responded: int = 0
    last_ms: int = 0
    epoch: int = -1  # of its last term as controller
    active_ms: int = 0  # when that term began
    resigned_epoch: int = -1
    ended: bool = False


@dataclass(slots=True, kw_only=True)
class Window:
    """What one node did in `WINDOW_MS` from `start_ms` on, by the node's clock."""

    node: str
    start_ms: int
    received: int = 0
    responded: int = 0
    forwarded: int = 0
    resent: int = 0
    commits: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Open:
    """A node's unanswered requests, while its process runs and the connection is open."""

    node: str
    requests: int
    oldest_ms: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Hop:
    """The latency of one part of the path of forwarded requests that ended in the last minute."""

    hop: str
    requests: int
    p50_us: float
    p99_us: float
    max_us: int


@dataclass(slots=True, kw_only=True)
class Summary:
    """A run after `batch` batches."""

    run: str
    batch: int = -1
    newest_ms: int = 0
    unreadable: int = 0
    late: int = 0
    boots: list[Boot] = field(default_factory=list)
    windows: list[Window] = field(default_factory=list)
    open: list[Open] = field(default_factory=list)
    latency: list[Hop] = field(default_factory=list)

    @property
    def approximate(self) -> bool:
        """Whether rates and latencies lack events that came too late."""
        return self.late > 0

    @property
    def lines(self) -> int:
        """The number of lines read."""
        return self.unreadable + sum(boot.lines for boot in self.boots)

    @property
    def kept_from_ms(self) -> int:
        """The start of the window in which the last minute begins; 0 before the first batch."""
        return max(self.newest_ms - KEPT_MS, 0) // WINDOW_MS * WINDOW_MS

    @property
    def controller(self) -> Boot | None:
        """The controller of the highest epoch, unless it resigned or its process ended."""
        last = max(self.boots, key=lambda boot: boot.epoch, default=None)
        if last is None or last.epoch < 0 or last.ended or last.resigned_epoch >= last.epoch:
            return None
        return last

    def add(self, counts: Iterable[Mapping[str, Any]]) -> None:
        """Add the counts of a batch: a row for each node, boot and window."""
        boots = {(boot.node, boot.boot): boot for boot in self.boots}
        ended: set[tuple[str, str]] = set()
        windows = {
            (known_window.node, known_window.start_ms): known_window
            for known_window in self.windows
        }
        kept_from_ms = self.kept_from_ms
        for row in counts:
            if None in (row["node"], row["boot"], row["start_ms"]):
                self.unreadable += row["lines"]
                continue
            boot = boots.setdefault(
                (row["node"], row["boot"]), Boot(node=row["node"], boot=row["boot"])
            )
            boot.lines += row["lines"]
            boot.received += row["received"]
            boot.responded += row["responded"]
            boot.last_ms = max(boot.last_ms, row["last_ms"])
            boot.ended |= row["stopped"]
            ended.update((identity[0], identity[1]) for identity in row["ended"])
            if row["active"] is not None:
                boot.epoch, boot.active_ms = max((boot.epoch, boot.active_ms), tuple(row["active"]))
            boot.resigned_epoch = max(boot.resigned_epoch, row["resigned_epoch"])
            if row["start_ms"] < kept_from_ms:
                self.late += row["of_requests"]
                continue
            window = windows.setdefault(
                (row["node"], row["start_ms"]), Window(node=row["node"], start_ms=row["start_ms"])
            )
            for name in ("received", "responded", "forwarded", "resent", "commits"):
                setattr(window, name, getattr(window, name) + row[name])
        for key in ended:
            boots.setdefault(key, Boot(node=key[0], boot=key[1])).ended = True
        self.boots = [boots[key] for key in sorted(boots)]
        self.newest_ms = max([self.newest_ms, *(boot.last_ms for boot in self.boots)])
        self.windows = [windows[key] for key in sorted(windows) if key[1] >= self.kept_from_ms]

    def to_json(self) -> str:
        """Return the document that `--json` prints."""
        active = self.controller
        return json.dumps(
            {
                "schema_version": SCHEMA_VERSION,
                **asdict(self),
                "lines": self.lines,
                "approximate": self.approximate,
                "controller": active
                and {"node": active.node, "epoch": active.epoch, "since_ms": active.active_ms},
            }
        )


def summary_from_json(text: str) -> Summary:
    """Read what `Summary.to_json` wrote."""
    values = json.loads(text)
    for name in ("schema_version", "lines", "approximate", "controller"):
        del values[name]
    lists = {"boots": Boot, "windows": Window, "open": Open, "latency": Hop}
    for name, kind in lists.items():
        values[name] = [kind(**load) for load in values[name]]
    return Summary(**values)
