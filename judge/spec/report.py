"""The verdict of the specification on a run, and how it is printed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from judge.evidence.reading import Evidence
from judge.spec.explain import Misfit, explain, locate
from judge.spec.projection import slices_of
from judge.spec.tlc import TlcTimeoutError
from judge.spec.whole import NotWholeError, whole_run
from judge.verdicts import Verdict

_SHOWN_MAX: Final = 3  # Each needs a run of TLC of its own.
_LINES_MAX: Final = 12
_NOT_TOGETHER: Final = "not checked together"


@dataclass(frozen=True, slots=True, kw_only=True)
class SpecReport:
    """What the specification says about a run."""

    verdict: Verdict
    requests: int
    misfits: tuple[Misfit, ...]  # the first ones
    unexplained: int
    too_large: tuple[str, ...]  # requests whose elements have too many different histories
    whole: str = (
        ""  # one line: whether one behaviour explains all requests, or why TLC was not asked
    )
    why: str = ""


def report_on(evidence: Evidence) -> SpecReport:
    """Let TLC explain every forwarded request of a run, then all of them together.

    Raises:
        TlcError: TLC cannot run.
    """
    if evidence.doubt:
        return _undecided(Verdict.UNKNOWN, evidence.doubt)
    slices, too_large = slices_of(evidence)
    if not slices:
        return _undecided(Verdict.NODATA, "the run has no forwarded request")
    misfits = explain(slices)
    located = [locate(misfit) for misfit in misfits[:_SHOWN_MAX]]
    verdict, whole = Verdict.PASS, f"{_NOT_TOGETHER}: a request alone is not explained"
    why = f"{len(too_large)} requests are too large to explain" if too_large else ""
    if not misfits:
        verdict, whole, misfit = _explain_together(evidence)
        located += [misfit] if misfit else []
    if verdict is Verdict.PASS and too_large:
        verdict = Verdict.UNKNOWN
    if located:
        gaps = [gap for of_witness in evidence.gaps.values() for gap in of_witness]
        verdict, why = (Verdict.UNKNOWN, gaps[0]) if gaps else (Verdict.FAIL, "")
    return SpecReport(
        verdict=verdict,
        requests=len(slices),
        misfits=tuple(located),
        unexplained=len(misfits),
        too_large=tuple(too_large),
        whole=whole,
        why=why,
    )


def _explain_together(evidence: Evidence) -> tuple[Verdict, str, Misfit | None]:
    """Return the verdict on the whole run, its line, and how far it is explained if not wholly."""
    try:
        slice_ = whole_run(evidence)
        if not explain([slice_]):
            return Verdict.PASS, "one behaviour explains all of them together", None
        misfit = locate(slice_)
    except NotWholeError as reason:
        return Verdict.PASS, f"{_NOT_TOGETHER}: {reason}", None
    except TlcTimeoutError as error:
        return Verdict.UNKNOWN, f"{_NOT_TOGETHER}: {error}", None
    return Verdict.FAIL, "no behaviour explains all of them together", misfit


def _undecided(verdict: Verdict, why: str) -> SpecReport:
    return SpecReport(verdict=verdict, requests=0, misfits=(), unexplained=0, too_large=(), why=why)


def lines_of(report: SpecReport) -> list[str]:
    """Return the report as lines: what is not explained, then the summary."""
    lines: list[str] = []
    for misfit in report.misfits:
        explained = misfit.explained
        of_what = "" if misfit.slice.is_whole else "request "
        lines.append(f"{of_what}{misfit.slice.name}: explained are {len(explained)} entries")
        lines += [f"    {entry}" for entry in explained[-_LINES_MAX:]]
        lines.append("  of the next entries, none fits:")
        lines += [f"  > {entry}" for entry in misfit.candidates]
    return [*lines, *summary_of(report)]


def summary_of(report: SpecReport) -> list[str]:
    """Return the verdict with the counts, and below it what else decides it."""
    explained_count = report.requests - report.unexplained
    text = f"{explained_count} of {report.requests} requests are explained by the specification"
    below = (sentence for sentence in (report.whole, report.why) if sentence)
    return [f"{report.verdict:10}{text}", *(f"{'':10}{sentence}" for sentence in below)]
