"""Judges the sealed evidence of a run of a scenario, in any tier."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

from chaos.result import Result, decide, differences
from chaos.scenario import Scenario
from judge.evidence.run_lookup import read_run
from judge.history import History
from judge.verdicts import Verdict, VerdictRow, judge, worst


def operations_min(scenario: Scenario) -> int:
    """Return how many recorded operations the property T1 requires.

    This is less than the scenario's number of successes, because not every success is recorded.
    """
    counts = (scenario.after, *(step.after for step in scenario.steps[:1]))
    return max(min(counts) // 4, 1)


def required(row: VerdictRow, judges: Collection[str]) -> VerdictRow:
    """Return the row. If `judges` has its property, the row always counts for the run's verdict.

    Otherwise a row with nothing to judge does not count.
    """
    return replace(row, decides=True) if row.property in judges else row


def judge_run(scenario: Scenario, result: Result, folder: Path) -> None:
    """Judge the evidence, and add what it shows to the result."""
    history = History(read_run(folder))
    expects = scenario.expects
    rows = [required(judgement.row, expects.judges) for judgement in judge(history)]
    # HANG is the verdict on a violated liveness property.
    broken = (Verdict.FAIL, Verdict.HANG)
    result.violated = tuple(row.property for row in rows if row.verdict in broken)
    judged = worst(row for row in rows if row.property not in expects.violates)
    done = sorted(
        operation.completed["mono_ns"]
        for operation in history.operations
        if operation.outcome == "ok" and operation.completed is not None
    )
    faults = [event["mono_ns"] for event in history.of_kind["fault_injected"]]
    elected = [event["mono_ns"] for event in history.of_kind["became_active"]]
    # Elections after the scenario, while the nodes are being stopped, do not count.
    ends = [e["mono_ns"] for e in history.of_kind["stopped"] if e["node"] == "harness-chaos"]
    over = min(ends, default=max(elected, default=0) + 1)
    began = min(faults or done, default=over)
    result.elections = sum(began < instant < over for instant in elected)
    result.open = sum(1 for operation in history.operations if operation.outcome == "info")
    result.longest_gap_s = max((b - a for a, b in pairwise(done)), default=0) / 1e9
    result.wrong += differences(
        expects,
        elections=result.elections,
        open_operations=result.open,
        acknowledged=result.acknowledged,
        longest_gap_s=result.longest_gap_s,
    )
    result.verdict = decide(expects, judged=judged, violated=result.violated, wrong=result.wrong)
    if result.verdict is not Verdict.PASS:
        result.wrong += [
            f"{row.property} {row.name}: {row.verdict}: {row.why}"
            for row in rows
            if row.decides and row.verdict is not Verdict.PASS
        ]
        missing = sorted(set(expects.violates) - set(result.violated))
        result.wrong += [f"{name} holds, but a violation was expected" for name in missing]
