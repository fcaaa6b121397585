"""Verdicts and what they mean to whoever runs the judge (chaos reference 2.3). Pure.

The rules stand in `event_log.promises`: both judges follow them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Final

from chaos.history import History
from event_log.promises import EXIT_CODES, PROMISES, VERDICTS, Promise, VerdictRow, Violation


class Verdict(Enum):
    """Worst first; only PASS is green."""

    FAIL = "FAIL"  # a counter-example was found
    UNKNOWN = "UNKNOWN"  # the evidence has holes
    HANG = "HANG"  # a bound in time was passed
    NODATA = "NODATA"  # there was nothing to judge
    CRASHED = "CRASHED"  # the harness, not the system
    PASS = "PASS"  # noqa: S105  # no password


assert tuple(each.value for each in Verdict) == VERDICTS

_BY_ID: Final[Mapping[str, Promise]] = {each.id: each for each in PROMISES}


@dataclass(frozen=True, slots=True)
class Finding:
    """What a property saw: how many rows it judged, and its counter-examples."""

    judged: int
    violations: tuple[Violation, ...] = ()
    # A sentence where the property does not apply to this run at all: then it is NODATA.
    does_not_apply: str = ""
    # A sentence where its own rows are not certain: then it cannot pass.
    uncertain: str = ""


@dataclass(frozen=True, slots=True)
class Property:
    """A promise's id, and the function that looks for its breach."""

    id: str
    check: Callable[[History], Finding]

    @property
    def promise(self) -> Promise:
        """What the registry says of it."""
        return _BY_ID[self.id]


@dataclass(frozen=True, slots=True)
class Judgement:
    """One property's verdict on one history."""

    property: Promise
    verdict: Verdict
    judged: int
    violations: tuple[Violation, ...]
    why: str
    decides: bool

    def row(self) -> VerdictRow:
        """Return it as both judges write it down."""
        of = self.property
        return VerdictRow(
            property=of.id,
            name=of.name,
            verdict=self.verdict.value,
            judged=self.judged,
            violations=len(self.violations),
            decides=self.decides,
            why=self.why,
        )


def judge(history: History, properties: Iterable[Property]) -> Iterator[Judgement]:
    """Yield one judgement for each property."""
    expected = history.run.expected
    for each in properties:
        promise = each.promise
        try:
            finding = each.check(history)
        except Exception as broken:  # A bug of the judge is no finding about the system.
            finding = Finding(0)
            verdict, why = Verdict.CRASHED, f"the property broke: {broken!r}"
        else:
            verdict, why = _verdict(promise, finding, history)
        if expected is not None:
            decides = promise.id in expected
        else:
            # Nothing gave occasion to judge it; a witness that is out of reach is another thing.
            had_occasion = finding.judged > 0 or bool(_out_of_reach(promise, history))
            decides = verdict is not Verdict.NODATA or had_occasion
        yield Judgement(promise, verdict, finding.judged, finding.violations, why, decides)


def _out_of_reach(promise: Promise, history: History) -> str:
    reasons = history.evidence.out_of_reach
    return next((reasons[each] for each in promise.needs if each in reasons), "")


def _verdict(promise: Promise, finding: Finding, history: History) -> tuple[Verdict, str]:
    if unreachable := _out_of_reach(promise, history):
        return Verdict.NODATA, unreachable
    if finding.does_not_apply:
        return Verdict.NODATA, finding.does_not_apply
    holes = history.evidence.holes
    hole = next((holes[each][0] for each in promise.needs if holes.get(each)), "")
    if finding.violations:
        if hole and promise.absence_accuses:
            return Verdict.UNKNOWN, hole
        return Verdict(promise.breach), finding.violations[0].sentence
    if hole and promise.absence_clears:
        return Verdict.UNKNOWN, hole
    if finding.uncertain:
        return Verdict.UNKNOWN, finding.uncertain
    if finding.judged == 0:
        return Verdict.NODATA, "nothing of that kind happened"
    return Verdict.PASS, ""


def worst(judgements: Sequence[Judgement]) -> Verdict:
    """Return the verdict of a run: the worst of those that decide."""
    found = {judgement.verdict for judgement in judgements if judgement.decides}
    return next((verdict for verdict in Verdict if verdict in found), Verdict.NODATA)


def exit_code(verdict: Verdict) -> int:
    """0 held, 1 failed or hung, 2 unknown or nothing to judge."""
    return EXIT_CODES[verdict.value]
