"""Checks every property on a history. The rules of verdicts are in `event_log.verdicts`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple

from event_log.properties import PROPERTY_SPECS, Violation, violation_order
from event_log.verdicts import Count, VerdictRow, inapplicable, verdict_row
from judge.history import History
from judge.properties import CHECKS, Check
from judge.properties.violations import ExtraViolation

_NOTHING: Final = Count()


class Judgement(NamedTuple):
    """The verdict on one property, and every violation of it."""

    row: VerdictRow
    violations: tuple[Violation, ...]


def judge(history: History, checks: Mapping[str, Check] = CHECKS) -> list[Judgement]:
    """Return one judgement for each property, in the order of the registry."""
    manifest = history.evidence.manifest
    gaps = {witness: found[0] for witness, found in history.evidence.gaps.items() if found}
    judgements = []
    for spec in PROPERTY_SPECS:
        violations: tuple[Violation, ...] = ()
        count = _NOTHING
        if not inapplicable(spec, manifest.run):
            violations, count = _count(checks[spec.id], history)
        row = verdict_row(spec, manifest, count, gaps, history.evidence.doubt)
        judgements.append(Judgement(row, violations))
    return judgements


def _count(check: Check, history: History) -> tuple[tuple[Violation, ...], Count]:
    try:
        rows = list(check(history))
    except Exception as crash:  # A bug of the judge says nothing about the system.
        return (), Count(crash=repr(crash))
    violations = sorted((row for row in rows if row is not None), key=violation_order)
    judged = len(rows) - sum(isinstance(row, ExtraViolation) for row in violations)
    first = violations[0].sentence if violations else ""
    return tuple(violations), Count(judged, len(violations), first)
