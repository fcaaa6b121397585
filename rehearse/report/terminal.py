"""The report on the terminal: 80 columns, worst first."""

from __future__ import annotations

import sys
import textwrap
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from judge.terminal import printable
from rehearse.compare import Comparison, Fate
from rehearse.metadata import Kind
from rehearse.records import PhaseRecords
from rehearse.report.document import PAGE, Phase, Report, errors_of, verdict_on_writes

_WIDTH: Final = 80
_SHOWN_MAX: Final = 8


def print_report(report: Report, folder: Path) -> None:
    """Print a report."""
    sys.stdout.write("\n")
    for line in lines_of(report, folder):
        sys.stdout.write(printable(line) + "\n")


def lines_of(report: Report, folder: Path) -> Iterator[str]:
    """Yield the lines of a report."""
    yield from _head(report)
    for phase in report.phases:
        yield from _phase(phase)
    if report.verdict is not None:
        yield from _wrapped(verdict_on_writes(report.verdict), 0)
    for sentence in report.lost[:_SHOWN_MAX]:
        yield from _wrapped(sentence, 2)
    for fault in report.faults:
        recovered = (
            "" if fault.recovered_s is None else f"; complete {fault.recovered_s:.1f} s later"
        )
        yield from _wrapped(
            f"Fault {fault.fault} hit {fault.hit}, and left: {fault.left}{recovered}.", 0
        )
    if report.changes:
        yield f"Znodes that the controller created or removed: {len(report.changes)}"
        for change in report.changes[:_SHOWN_MAX]:
            yield from _wrapped(f"{change.what} {change.path}", 2)
    yield from _source(report)
    yield ""
    if report.steps:
        yield "Next steps for the cluster:"
    for step in report.steps:
        is_diff = step.startswith(("+ ", "- "))
        yield from ([f"      {step}"] if is_diff else _wrapped(step, 2))
    yield ""
    yield f"The report with every item: {folder / PAGE}"


def _head(report: Report) -> Iterator[str]:
    if report.until == "rollback" and report.outcome == "completed":
        verdict = "The rollback completed."
    elif report.outcome == "completed":
        verdict = f"The migration completed until {report.until}."
    else:
        what = "rollback" if report.until == "rollback" else "migration"
        verdict = f"The {what} {report.outcome}: {report.why}"
    if report.outcome == "completed" and not report.is_good:
        verdict += " Not everything is right."
    yield from _wrapped(verdict, 0)
    for finding in report.findings[:_SHOWN_MAX]:
        seen = f"; now: {finding.seen}" if finding.seen else ""
        yield from _wrapped(f"The scan found {finding.rule} at {finding.where}{seen}.", 2)
    yield (
        f"Kafka {report.kafka}, level {report.level}, {len(report.brokers)} brokers, "
        f"{report.znodes:,} znodes, {report.seconds:.0f} s."
    )
    if report.hidden:
        yield from _wrapped(
            f"{report.hidden:,} znodes are not rehearsed, or a part of them: the source lacks "
            "secrets, or the right to read them.",
            0,
        )
    if report.memory_mib:
        sizes = ", ".join(f"{name} {mib:,}" for name, mib in report.memory_mib.items())
        yield from _wrapped(f"Most memory in MiB: {sizes}.", 0)
    yield ""


def _phase(phase: Phase) -> Iterator[str]:
    took = "did not end" if phase.seconds is None else f"{phase.seconds:.1f} s"
    yield f"{phase.name}: {took}"
    for before, after in zip(phase.transitions, phase.transitions[1:], strict=False):
        yield f"  {before.state:<34}{after.time_s - before.time_s:7.2f} s"
    if phase.transitions:
        yield f"  {phase.transitions[-1].state}"
    if phase.gap_s is not None:
        yield f"  No controller for {phase.gap_s:.2f} s."
    if phase.load is not None:
        yield from _wrapped(
            f"Load: {phase.load.acknowledged:,} writes, longest wait "
            f"{phase.load.longest_gap_s:.2f} s, errors: {errors_of(phase.load.errors)}.",
            2,
        )
    if phase.record_load is not None:
        yield from _wrapped(records_of(phase.record_load), 2)
    for comparison in phase.comparisons:
        yield from _comparison(comparison)


def records_of(load: PhaseRecords) -> str:
    """Return what became of the records of a phase as one sentence."""
    lost = "an unknown number" if load.lost is None else f"{load.lost:,}"
    return (
        f"Records: {load.acknowledged:,} acknowledged, {load.consumed:,} consumed, {lost} lost, "
        f"longest wait {load.longest_wait_s:.2f} s (consumer {load.longest_silence_s:.2f} s), "
        f"errors: {errors_of(load.errors)}."
    )


def _comparison(comparison: Comparison) -> Iterator[str]:
    yield f"  {comparison.name}"
    for kind in Kind:
        counts = {fate: comparison.of_kind(kind, fate) for fate in Fate}
        if any(counts.values()):
            text = ", ".join(f"{count:,} {fate}" for fate, count in counts.items() if count)
            yield f"    {kind:<18}{text}"
    unexplained = comparison.unexplained
    for difference in unexplained[:_SHOWN_MAX]:
        change = {
            Fate.LOST: f"lost ({difference.before})",
            Fate.ADDED: f"added ({difference.after})",
        }.get(difference.fate, f"{difference.before} → {difference.after}")
        yield from _wrapped(f"UNEXPLAINED {difference.item}: {change}", 4)
    if len(unexplained) > _SHOWN_MAX:
        yield f"    … and {len(unexplained) - _SHOWN_MAX:,} more"
    reasons = Counter(difference.why for difference in comparison.differences if difference.why)
    for why, count in reasons.most_common(_SHOWN_MAX):
        yield from _wrapped(f"{count:,} × {why}", 4)


def _source(report: Report) -> Iterator[str]:
    if report.zxid_before is not None and report.zxid_after is not None:
        others = report.others_wrote
        count = "an unknown number" if others is None else f"{others:,}"
        yield from _wrapped(
            f"The source was only read: zxid 0x{report.zxid_before:x} before, "
            f"0x{report.zxid_after:x} after. Two transactions are this command's sessions; "
            f"{count} are of others, who changed {report.source_changes:,} znodes.",
            0,
        )


def _wrapped(text: str, indent: int) -> list[str]:
    space = " " * indent
    return textwrap.wrap(
        text,
        _WIDTH,
        initial_indent=space,
        subsequent_indent=space + "  ",
        break_on_hyphens=False,
    ) or [""]
