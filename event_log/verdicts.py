"""The rules that turn counts and gaps into verdicts. Both judges apply them.

The functions of this module are pure. The first rule that applies determines the verdict on a
property:

1. CRASHED: the judge itself failed.
2. NODATA: the property needs events of nodes or ZooKeeper's transaction logs, and the run does not
   have them. This rule ignores missing histories of clients.
3. NODATA: the property does not apply to the run. A1 applies only to runs with an authorizer. L7
   and T1 apply only to scenarios.
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

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from event_log.evidence import COMMITS, FIRST_DUMP, Manifest, RunDescription
from event_log.properties import PropertySpec


class Verdict(StrEnum):
    """Worst first. Only PASS counts as success."""

    FAIL = "FAIL"  # a violation was found
    UNKNOWN = "UNKNOWN"  # the evidence has gaps, or may have been changed
    HANG = "HANG"  # a time limit was exceeded
    NODATA = "NODATA"  # there was nothing to judge
    CRASHED = "CRASHED"  # the judge failed
    PASS = "PASS"  # noqa: S105  # not a password


# The witness of each kind of file. Kinds that are not listed belong to the witness `commits`.
WITNESSES: Final[Mapping[str, str]] = {
    **dict.fromkeys(("node", "harness"), "events"),
    "client": "clients",
    **dict.fromkeys(("kafka_request", "kafka_authorizer"), "kafka"),
}
UNDECIDED: Final = 3  # exit code, as in bridgehead/exit_codes.py
CANNOT_RUN: Final = 4
NOTHING_TO_JUDGE: Final = "the run has nothing of this kind"
NO_AUTHORIZER: Final = "the run has no authorizer"
NO_SCENARIO: Final = "the run is not a scenario: no fault was injected"


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


def witness_of(file_kind: str) -> str:
    """Return the witness that a kind of file belongs to."""
    return WITNESSES.get(file_kind, "commits")


def out_of_reach(manifest: Manifest) -> dict[str, str]:
    """Return a sentence for each of the witnesses `events` and `commits` that the run lacks."""
    found = {}
    if not any(each.kind == "node" for each in manifest.files):
        found["events"] = "the run has no events of any node"
    if not manifest.zookeeper.logs:
        found["commits"] = "ZooKeeper's transaction logs are missing"
    return found


def manifest_gaps(manifest: Manifest, missing: Collection[str]) -> Iterator[tuple[str, str]]:
    """Yield witness and sentence of each gap that is known before any line is read.

    Args:
        manifest: the run's manifest.
        missing: paths of files that the manifest names and that do not exist.
    """
    if manifest.zookeeper.logs:
        named = {each.path for each in manifest.files}
        absent = [f"{name} is missing" for name in (COMMITS, FIRST_DUMP) if name not in named]
        yield from (("commits", gap) for gap in [*manifest.zookeeper.holes, *absent])
    for each in sorted(manifest.files, key=lambda file: file.path):
        if each.path in missing:
            yield witness_of(each.kind), f"{each.path} is missing"


def inapplicable(spec: PropertySpec, run: RunDescription) -> str:
    """Return why a property does not apply to a run; "" if it does."""
    if spec.id == "A1" and run.super_users is None:
        return NO_AUTHORIZER
    if spec.id in ("L7", "T1") and run.scenario is None:
        return NO_SCENARIO
    return ""


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
    unreachable = next((absent[each] for each in spec.witnesses if each in absent), "")
    gap = next((gaps[each] for each in spec.witnesses if each in gaps), "")
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
    found = {row.verdict for row in rows if row.decides}
    return next((each for each in Verdict if each in found), Verdict.NODATA)


def exit_code(*verdicts: Verdict) -> int:
    """Return 0 if all runs passed, 1 if one failed or hung, else 3 (undecided).

    The codes are those of bridgehead/exit_codes.py, which judges must not import.
    """
    if any(each in (Verdict.FAIL, Verdict.HANG) for each in verdicts):
        return 1
    return 0 if verdicts and set(verdicts) == {Verdict.PASS} else UNDECIDED
