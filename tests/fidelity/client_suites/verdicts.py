"""Joins the results of a suite with the table of reasons; pure."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

from tests.fidelity.client_suites.reasons import ROWS, Row
from tests.fidelity.client_suites.running import Result

Verdict = Literal["passed", "failed", "inapplicable"]


@dataclass(frozen=True)
class Judged:
    """The verdict of one test; a failure without a reason is unexplained."""

    test: str
    verdict: Verdict
    reason: str = ""
    message: str = ""

    @property
    def unexplained(self) -> bool:
        """Whether the test failed and no row says why."""
        return self.verdict == "failed" and not self.reason


def judge(
    suite: str, system: str, results: Iterable[Result], rows: Iterable[Row] = ROWS
) -> list[Judged]:
    """Return a verdict for each result."""
    reasons = {row.test: row for row in rows if row.suite == suite and system in row.systems}
    return [_judge(system, result, reasons.get(result.test)) for result in results]


def _judge(system: str, result: Result, row: Row | None) -> Judged:
    if result.outcome == "passed":
        late = f"On {system} it passed at attempt {result.attempts}."
        late = late if result.attempts > 1 else ""
        return Judged(result.test, "passed", late)
    if result.outcome == "skipped":
        return Judged(result.test, "inapplicable", result.message)
    if row is None:
        return Judged(result.test, "failed", message=result.message)
    return Judged(result.test, "inapplicable", row.reason)


def stale_rows(
    suite: str, system: str, results: Iterable[Result], rows: Iterable[Row] = ROWS
) -> list[Row]:
    """Return the rows whose test did not fail. They must be removed from the table."""
    failed = {result.test for result in results if result.outcome == "failed"}
    rows_of_suite = [row for row in rows if row.suite == suite and system in row.systems]
    return [row for row in rows_of_suite if row.test not in failed]
