"""The verdict of the specification on a run, and how it is printed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from judge.evidence.reading import Evidence
from judge.spec.explain import Misfit, explain, locate
from judge.spec.projection import slices_of
from judge.verdicts import Verdict

_SHOWN_MAX: Final = 3  # Each needs a run of TLC of its own.
_LINES_MAX: Final = 12


@dataclass(frozen=True, slots=True, kw_only=True)
class SpecReport:
    """What the specification says about a run."""

    verdict: Verdict
    requests: int
    misfits: tuple[Misfit, ...]  # the first ones
    unexplained: int
    too_large: tuple[str, ...]  # requests whose elements have too many different histories
    why: str = ""


def report_on(evidence: Evidence) -> SpecReport:
    """Let TLC explain every forwarded request of a run. Raises TlcError."""
    if evidence.doubt:
        return _undecided(Verdict.UNKNOWN, evidence.doubt)
    slices, too_large = slices_of(evidence)
    if not slices:
        return _undecided(Verdict.NODATA, "the run has no forwarded request")
    misfits = explain(slices)
    gaps = [gap for of_witness in evidence.gaps.values() for gap in of_witness]
    verdict, why = Verdict.PASS, ""
    if misfits:
        verdict, why = (Verdict.UNKNOWN, gaps[0]) if gaps else (Verdict.FAIL, "")
    elif too_large:
        verdict, why = Verdict.UNKNOWN, f"{len(too_large)} requests are too large to explain"
    return SpecReport(
        verdict=verdict,
        requests=len(slices),
        misfits=tuple(locate(misfit) for misfit in misfits[:_SHOWN_MAX]),
        unexplained=len(misfits),
        too_large=tuple(too_large),
        why=why,
    )


def _undecided(verdict: Verdict, why: str) -> SpecReport:
    return SpecReport(verdict=verdict, requests=0, misfits=(), unexplained=0, too_large=(), why=why)


def lines_of(report: SpecReport) -> Sequence[str]:
    """Return the report as lines: the verdict last."""
    lines: list[str] = []
    for misfit in report.misfits:
        explained = misfit.explained
        lines.append(f"request {misfit.slice.name}: explained are {len(explained)} entries")
        lines += [f"    {entry}" for entry in explained[-_LINES_MAX:]]
        lines.append("  of the next entries, none fits:")
        lines += [f"  > {entry}" for entry in misfit.candidates]
    explained_count = report.requests - report.unexplained
    text = f"{explained_count} of {report.requests} requests are explained by the specification"
    lines.append(f"{report.verdict:10}{text}")
    if report.why:
        lines.append(f"          {report.why}")
    return lines
