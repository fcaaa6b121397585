"""Verdicts and what they mean to whoever runs the judge (chaos reference 2.3). Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from enum import Enum
from typing import Final

from chaos.history import History


class Verdict(Enum):
    """Worst first; only PASS is green."""

    FAIL = "FAIL"  # a counter-example was found
    UNKNOWN = "UNKNOWN"  # the evidence has holes
    HANG = "HANG"  # a bound in time was passed
    NODATA = "NODATA"  # there was nothing to judge
    CRASHED = "CRASHED"  # the harness, not the system
    PASS = "PASS"  # noqa: S105  # no password


_ORDER: Final = tuple(Verdict)
_EXIT_CODES: Final = {
    Verdict.PASS: 0,
    Verdict.FAIL: 1,
    Verdict.HANG: 1,
    Verdict.UNKNOWN: 2,
    Verdict.NODATA: 2,
    Verdict.CRASHED: 2,
}


@dataclass(frozen=True, slots=True)
class Finding:
    """What a property saw: how many rows it judged, and its counter-examples as sentences."""

    judged: int
    violations: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Property:
    """A promise, and the function that looks for its breach."""

    id: str  # W2
    name: str  # every_write_is_fenced
    promise: str
    check: Callable[[History], Finding]
    argues_from_absence: bool  # then a hole in the evidence makes PASS impossible


@dataclass(frozen=True, slots=True)
class Judgement:
    """One property's verdict on one history."""

    property: Property
    verdict: Verdict
    judged: int
    violations: tuple[str, ...]
    why: str


def judge(history: History, properties: Iterable[Property]) -> Iterator[Judgement]:
    """Yield one judgement for each property."""
    for each in properties:
        try:
            finding = each.check(history)
        except Exception as broken:  # A bug of the judge is no finding about the system.
            yield Judgement(each, Verdict.CRASHED, 0, (), f"the property broke: {broken!r}")
            continue
        verdict, why = _verdict(each, finding, history)
        yield Judgement(each, verdict, finding.judged, finding.violations, why)


def _verdict(of: Property, finding: Finding, history: History) -> tuple[Verdict, str]:
    if finding.violations:
        return Verdict.FAIL, finding.violations[0]
    if history.holes and of.argues_from_absence:
        return Verdict.UNKNOWN, history.holes[0]
    if finding.judged == 0:
        return Verdict.NODATA, "nothing of that kind happened"
    return Verdict.PASS, ""


def worst(judgements: Iterable[Judgement]) -> Verdict:
    """Return the verdict of a run."""
    found = {judgement.verdict for judgement in judgements}
    return next((verdict for verdict in _ORDER if verdict in found), Verdict.NODATA)


def exit_code(verdict: Verdict) -> int:
    """0 held, 1 failed or hung, 2 unknown or nothing to judge."""
    return _EXIT_CODES[verdict]
