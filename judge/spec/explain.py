"""Lets TLC explain the slices of a run, and finds the entry that no behaviour explains."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from judge.spec.projection import Slice
from judge.spec.tlc import Expression, literal, run_tlc

# Slices per run of TLC. More slices make the module slow to parse, fewer waste starts of Java.
_BATCH: Final = 400
_SLICES_S: Final = 3600
_WHOLE_S: Final = 900
_EXPLAINED: Final = re.compile(r'<<"explained", (\d+)>>')
_PLACE: Final = re.compile(r'<<"place", (\d+), (\d+), (\d+)>>')
# Parts that one request cannot show, because they are about time or about other requests.
_NOT_SHOWN: Final = ("ONE_ROUND", "LEASE", "WAITS")
# A response may wait for brokers while the next round is committed; Trace.tla has its own rule.
_NOT_SHOWN_IN_RUN: Final = ("ONE_ROUND",)
_PARTS: Final = (
    *("FENCE", "COUNTER", "OUTCOMES", "ATTEMPTS", "JOINS", "RESENDS", "ONE_ROUND", "LIVES"),
    *("LOWEST", "STORES_FLOORS", "FLOOR_CHECKED", "GRACE", "LEASE", "WAITS", "APPLIED"),
)
_FAULTS: Final = ("losses", "breaks", "delays", "deletions", "restarts", "unregistered", "direct")


@dataclass(frozen=True, slots=True)
class Misfit:
    """A slice that no behaviour explains: how far it got, and what does not fit."""

    slice: Slice
    events: int
    commits: int

    @property
    def explained(self) -> list[str]:
        """The longest explained prefix: the nodes' events, then ZooKeeper's transactions."""
        nodes, zookeeper = self.slice.texts
        return [*nodes[: self.events], *zookeeper[: self.commits]]

    @property
    def candidates(self) -> list[str]:
        """The next event and the next transaction: neither fits."""
        nodes, zookeeper = self.slice.texts
        return [*nodes[self.events : self.events + 1], *zookeeper[self.commits : self.commits + 1]]


def explain(slices: Sequence[Slice]) -> list[Slice]:
    """Return the slices that the specification does not explain. Raises TlcError."""
    by_shape: dict[object, list[Slice]] = defaultdict(list)
    for slice_ in slices:
        by_shape[slice_.shape].append(slice_)
    misfits: list[Slice] = []
    for alike in by_shape.values():
        for at in range(0, len(alike), _BATCH):
            batch = alike[at : at + _BATCH]
            output = _run(batch, "IsReported")
            explained = {int(number) for number in _EXPLAINED.findall(output)}
            misfits += [slice_ for number, slice_ in enumerate(batch, 1) if number not in explained]
    return misfits


def locate(slice_: Slice) -> Misfit:
    """Find how far the specification explains a slice. Raises TlcError."""
    places = _PLACE.findall(_run([slice_], "IsLocated"))
    events, commits = max(
        ((int(events), int(commits)) for _, events, commits in places), key=lambda p: (sum(p), p)
    )
    return Misfit(slice_, events, commits)


def _run(slices: Sequence[Slice], report: str) -> str:
    requests, is_whole = slices[0].requests, slices[0].is_whole
    hidden = _NOT_SHOWN_IN_RUN if is_whole else _NOT_SHOWN
    constants: dict[str, object] = {
        "Nodes": Expression(f"1..{max(slice_.nodes for slice_ in slices)}"),
        "Topics": set(slices[0].topics),
        "Requests": Expression(f"1..{len(requests)}"),
        "Request": list(requests),
        "EpochMax": max(slice_.epochs for slice_ in slices) + 1,
        "Budget": dict.fromkeys(_FAULTS, 1_000_000),
        "Reports": False,
        "Blocks": False,
        "Observed": True,
        "Deadlines": True,
        **{part: part not in hidden for part in _PARTS},
        "Slices": Expression(_set_of(slices)),
        "IsWhole": is_whole,
    }
    return run_tlc(
        constants,
        base="Trace",
        specification="TraceSpec",
        invariants=[report],
        view="TraceView",
        workers=1,
        timeout_s=_WHOLE_S if is_whole else _SLICES_S,
    ).output


def _set_of(slices: Sequence[Slice]) -> str:
    """Return a set that TLC evaluates once: the slice is a part of each state."""
    records = [
        {"number": number, "events": list(slice_.events), "commits": list(slice_.commits)}
        for number, slice_ in enumerate(slices, 1)
    ]
    return "{" + ",\n".join(map(literal, records)) + "}"
