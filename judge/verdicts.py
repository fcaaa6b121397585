"""The rules that turn counts and gaps into verdicts. Both judges apply them.

The functions of this module are pure. The first rule that applies determines the verdict on a
property:

1. CRASHED: the judge itself failed.
2. NODATA: the property needs events of nodes or ZooKeeper's transaction logs, and the run does not
   have them. This rule ignores missing histories of clients.
3. NODATA: the property does not apply to the run. A1 applies only to runs with an authorizer.
4. UNKNOWN: a violation was found, but a witness that the property needs has a gap, and
   `gap_blocks_fail` is true. The missing evidence could explain the violation.
5. FAIL: a violation was found. A violation of L1 results in HANG instead. A violation of T1 results
   in NODATA, because a fault without effect proves nothing.
6. UNKNOWN: a witness that the property needs has a gap, and `gap_blocks_pass` is true. The missing
   evidence could contain a violation.
7. UNKNOWN: the evidence may have been changed. Either the run is not sealed and `--unsealed` is not
   given, or `--seal-key` is given and the manifest is not signed.
8. NODATA: there was nothing to judge.
9. PASS: none of the rules above applies.

The column *a gap blocks* has PASS if `gap_blocks_pass` is true, and FAIL if `gap_blocks_fail` is
true.

The verdict on a run is the worst verdict of the properties that count. The order, from the worst
to the best, is FAIL, UNKNOWN, HANG, NODATA, CRASHED, PASS. If the manifest names expected
properties, these count. Otherwise all properties count, except those that are NODATA by rule 3
or 8. If no property counts, the verdict on the run is NODATA.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Final, NamedTuple

from event_log.evidence import Manifest, RunDescription
from judge.evidence.gaps import out_of_reach
from judge.exit_codes import FAILED, UNDECIDED
from judge.history import History
from judge.properties import PROPERTIES, Property
from judge.property import ExtraViolation, PropertySpec, Runs, Violation, violation_order

NOTHING_TO_JUDGE: Final = "the run has nothing of this kind"


class Verdict(StrEnum):
    """Worst first. Only PASS counts as success."""

    FAIL = "FAIL"  # a violation was found
    UNKNOWN = "UNKNOWN"  # the evidence has gaps, or may have been changed
    HANG = "HANG"  # a time limit was exceeded
    NODATA = "NODATA"  # there was nothing to judge
    CRASHED = "CRASHED"  # the judge failed
    PASS = "PASS"  # noqa: S105  # not a password


@dataclass(frozen=True, slots=True, kw_only=True)
class VerdictRow:
    """The verdict on one property. `decides`: it counts for the verdict on the run."""

    property: str
    name: str
    verdict: Verdict
    judged: int
    violations: int
    decides: bool
    why: str  # the first violation's sentence, the first gap, or what is missing; "" for PASS


@dataclass(frozen=True, slots=True)
class Count:
    """The rows of one property that were judged, and the first violation's sentence."""

    judged: int = 0
    violations: int = 0
    sentence: str = ""
    crash: str = ""  # the judge's own error


def inapplicable(spec: PropertySpec, run: RunDescription) -> str:
    """Return why a property does not apply to a run; "" if it does."""
    lacks_authorizer = spec.applies_to is Runs.WITH_AUTHORIZER and run.super_users is None
    return spec.applies_to.value if lacks_authorizer else ""


def verdict_row(
    spec: PropertySpec, manifest: Manifest, count: Count, gaps: Mapping[str, str], doubt: str
) -> VerdictRow:
    """Return the verdict on one property.

    Args:
        spec: the property.
        manifest: the run's manifest.
        count: the property's rows and violations.
        gaps: the first gap of each witness that has one.
        doubt: why the evidence may have been changed (`SealRules.doubt`), or "".
    """
    absent = out_of_reach(manifest)
    unreachable = next((absent[witness] for witness in spec.witnesses if witness in absent), "")
    gap = next((gaps[witness] for witness in spec.witnesses if witness in gaps), "")
    verdict, why = Verdict.PASS, ""
    if count.crash:
        verdict, why = Verdict.CRASHED, f"the judge crashed: {count.crash}"
    elif reason := unreachable or inapplicable(spec, manifest.run):
        verdict, why = Verdict.NODATA, reason
    elif count.violations and not (gap and spec.gap_blocks_fail):
        verdict, why = Verdict(spec.violated), count.sentence
    elif gap and (count.violations or spec.gap_blocks_pass):
        verdict, why = Verdict.UNKNOWN, gap
    elif doubt:
        verdict, why = Verdict.UNKNOWN, doubt
    elif not count.judged:
        verdict, why = Verdict.NODATA, NOTHING_TO_JUDGE
    if manifest.run.expected is not None:
        decides = spec.id in manifest.run.expected
    else:
        decides = verdict != Verdict.NODATA or bool(unreachable or count.violations)
    return VerdictRow(
        property=spec.id,
        name=spec.name,
        verdict=verdict,
        judged=count.judged,
        violations=count.violations,
        decides=decides,
        why=why,
    )


def worst(rows: Iterable[VerdictRow]) -> Verdict:
    """Return the verdict on a run: the worst among the rows that decide."""
    verdicts = {row.verdict for row in rows if row.decides}
    return next((verdict for verdict in Verdict if verdict in verdicts), Verdict.NODATA)


def exit_code(*verdicts: Verdict) -> int:
    """Return 0 if all runs passed, 1 if one failed or hung, else 3 (undecided)."""
    if any(verdict in (Verdict.FAIL, Verdict.HANG) for verdict in verdicts):
        return FAILED
    return 0 if verdicts and set(verdicts) == {Verdict.PASS} else UNDECIDED


class Judgement(NamedTuple):
    """The verdict on one property, and every violation of it."""

    row: VerdictRow
    violations: tuple[Violation, ...]


def judge(history: History, properties: Sequence[Property] = PROPERTIES) -> list[Judgement]:
    """Check every property on a history; return the judgements in the order of the registry."""
    manifest = history.evidence.manifest
    gaps = {witness: lines[0] for witness, lines in history.evidence.gaps.items() if lines}
    judgements = []
    for property_ in properties:
        violations: tuple[Violation, ...] = ()
        count = Count()
        if not inapplicable(property_.SPEC, manifest.run):
            violations, count = _count(property_, history)
        row = verdict_row(property_.SPEC, manifest, count, gaps, history.evidence.doubt)
        judgements.append(Judgement(row, violations))
    return judgements


def _count(of: Property, history: History) -> tuple[tuple[Violation, ...], Count]:
    try:
        rows = list(of.check(history))
    except Exception as crash:  # A bug of the judge says nothing about the system.
        return (), Count(crash=repr(crash))
    violations = sorted((row for row in rows if row is not None), key=violation_order)
    judged = len(rows) - sum(isinstance(row, ExtraViolation) for row in violations)
    first = violations[0].sentence if violations else ""
    return tuple(violations), Count(judged, len(violations), first)
