"""Runs the tests of rows of docs/kips.md without and with mutants, and judges the results."""

from __future__ import annotations

import queue
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from enum import Enum
from typing import NamedTuple, TypeVar

from tests.kips.mutant import Mutant
from tests.kips.pytest_run import ERROR, FAILED, PASSED, interrupt, run_tests
from tests.kips.tree import Tree
from tools.kip_rows import Row

MUTATED_LIMIT_S = 240.0
MUTATED_UNIT_LIMIT_S = 60.0  # unit tests that run longer hang
UNMUTATED_LIMIT_S = 600.0
UNIT = "tests/unit"
COLUMNS = 80
_Job = TypeVar("_Job")
_Result = TypeVar("_Result")


class Verdict(Enum):
    KILLED = "(the tests of each row fail)"
    SURVIVED = "(a row's tests pass)"
    BROKEN = "(a row's tests do not run to their end)"


class Result(NamedTuple):
    """A mutant and its verdict. `why` says which of its rows are to blame."""

    verdict: Verdict
    mutant: Mutant
    why: str

    def __str__(self) -> str:
        return f"{self.why}{', '.join(self.mutant.rows)} in {self.mutant}"


class Proof:
    """`trees` are copies of the project; each runs one job at a time.

    With `unit_only`, only unit tests run.
    """

    def __init__(
        self, rows: Mapping[str, Row], trees: Sequence[Tree], *, unit_only: bool = False
    ) -> None:
        self._rows = rows
        self._unit_only = unit_only
        self._free: queue.SimpleQueue[Tree] = queue.SimpleQueue()
        for tree in trees:
            self._free.put(tree)
        self._workers = len(trees)

    def unmutated(self, mutants: Iterable[Mutant]) -> dict[str, set[str]]:
        """Run the tests of the mutants' rows without a mutant; return those that do not pass."""
        tests = sorted({test for mutant in mutants for test in self._tests(mutant.rows)})
        groups: dict[str, list[str]] = {}
        for test in tests:  # The slow tests of a file run together: they share a cluster.
            groups.setdefault(test.partition("::")[0] if _is_slow(test) else UNIT, []).append(test)
        wrong: dict[str, set[str]] = {}

        def run(tree: Tree, group: str) -> str:
            ends = run_tests(tree.folder, groups[group], limit_s=UNMUTATED_LIMIT_S)
            failed = {t: ends.get(t, set()) for t in groups[group] if ends.get(t) != {PASSED}}
            wrong.update(failed)
            return f"{'FAILED' if failed else 'passed'} {group}, {len(groups[group])} tests"

        print("Without a mutant:")
        self._each(sorted(groups, key=lambda group: (group != UNIT, group)), run)
        return wrong

    def mutated(self, mutants: Iterable[Mutant]) -> list[Result]:
        """Apply each mutant and run the tests of its rows; return the verdicts."""
        results: list[Result] = []

        def run(tree: Tree, mutant: Mutant) -> str:
            with tree.mutated(mutant):
                verdict, why = self._judge(tree, mutant)
            rows = ", ".join(mutant.rows)
            results.append(Result(verdict, mutant, why))
            return f"{verdict.name.lower():8} {rows} {mutant.module}:{mutant.name}"

        print("With each mutant:")
        self._each(
            sorted(mutants, key=lambda mutant: _cheapest_first(self._tests(mutant.rows)[-1])), run
        )
        return results

    def _tests(self, rows: Iterable[str]) -> list[str]:
        """Return the tests of these rows, the cheapest first."""
        tests = {
            test
            for number in rows
            for test in self._rows[number].tests
            if not (self._unit_only and _is_slow(test))
        }
        return sorted(tests, key=_cheapest_first)

    def _judge(self, tree: Tree, mutant: Mutant) -> tuple[Verdict, str]:
        """Require a failed test for each row. An error in a fixture is not a failed test."""
        if not mutant.needs_every_row:
            return self._judge_generated(tree, mutant)
        ends: dict[str, set[str]] = {}
        left = list(mutant.rows)
        try:
            for is_slow in (False, True):
                tests = [test for test in self._tests(left) if _is_slow(test) is is_slow]
                if tests:
                    ends |= run_tests(tree.folder, tests, limit_s=_limit_s(is_slow))
                left = [row for row in left if not self._fails(row, ends)]
        except TimeoutError as error:
            return Verdict.BROKEN, f"{error}: "
        if not left:
            return Verdict.KILLED, ""
        missing = any(ends.get(test, {ERROR}) & {ERROR} for test in self._tests(left))
        return Verdict.BROKEN if missing else Verdict.SURVIVED, f"{', '.join(left)} of "

    def _judge_generated(self, tree: Tree, mutant: Mutant) -> tuple[Verdict, str]:
        """Require that one test of the rows fails, cannot run or does not end."""
        for is_slow in (False, True):
            tests = [test for test in self._tests(mutant.rows) if _is_slow(test) is is_slow]
            if not tests:
                continue
            try:
                limit_s = _limit_s(is_slow)
                ends = run_tests(tree.folder, tests, limit_s=limit_s, until_failure=True)
            except TimeoutError:
                return Verdict.KILLED, ""
            if any(ends.get(test) != {PASSED} for test in tests):
                return Verdict.KILLED, ""
        return Verdict.SURVIVED, ""

    def _fails(self, row: str, ends: Mapping[str, set[str]]) -> bool:
        return any(FAILED in ends.get(test, ()) for test in self._rows[row].tests)

    def _each(self, jobs: Sequence[_Job], run: Callable[[Tree, _Job], str]) -> None:
        """Run every job in a free copy, and print its result when it ends."""
        started_s = time.monotonic()
        done = 0

        def one(job: _Job) -> None:
            nonlocal done
            tree = self._free.get()
            try:
                line = run(tree, job)
            finally:
                self._free.put(tree)
            done += 1
            line = f"{done}/{len(jobs)} {time.monotonic() - started_s:4.0f} s  {line}"
            print(line[:COLUMNS], flush=True)

        with ThreadPoolExecutor(self._workers) as pool:
            try:
                for ended in [pool.submit(one, job) for job in jobs]:
                    ended.result()
            except BaseException:
                pool.shutdown(wait=False, cancel_futures=True)
                interrupt()
                raise


def _limit_s(is_slow: bool) -> float:
    return MUTATED_LIMIT_S if is_slow else MUTATED_UNIT_LIMIT_S


def _is_slow(test: str) -> bool:
    return not test.startswith(f"{UNIT}/")


def _cheapest_first(test: str) -> tuple[bool, str]:
    """Return a sort key: unit tests, then the tests that start clusters, file by file."""
    return _is_slow(test), test
