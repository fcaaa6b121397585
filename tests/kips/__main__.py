"""Prove that the tests of docs/kips.md can fail: each row's tests must detect its mutants.

First the mutants that were written for the rows are applied, then those that are generated for the
statements that implement the rows (tests/kips/generated.py).

python -m tests.kips [--rows 590.9,590.10] [--only written] [--unit | --cluster]
                     [--fraction 0.1 [--seed N]] [--workers N]
"""

from __future__ import annotations

import argparse
import random
import signal
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from bridgehead.exit_codes import ExitCode
from tests.kips.explained import EXPLAINED
from tests.kips.generated import generated
from tests.kips.mutant import Mutant
from tests.kips.proof import UNIT, Proof, Result, Verdict
from tests.kips.registry import MUTANTS, WITHOUT
from tests.kips.tree import Tree
from tools.kip_rows import ROOT, Row, rows

# Of the generated mutants without an explanation, at most this share may survive.
SURVIVORS_MAX: Final = 0.1


def main() -> int:
    """Return an exit code of bridgehead.exit_codes."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--rows", help="only the mutants of these rows, such as 590.9,590.10")
    parser.add_argument("--only", choices=("written", "generated"), help="only these mutants")
    kind = parser.add_mutually_exclusive_group()
    kind.add_argument("--unit", action="store_true", help="only mutants of rows with unit tests")
    kind.add_argument("--cluster", action="store_true", help="only mutants of the other rows")
    parser.add_argument("--fraction", type=float, help="only a random part of the mutants")
    parser.add_argument("--seed", type=int, default=random.randrange(10**6))
    parser.add_argument("--workers", type=int, default=1, help="copies that are tested at a time")
    args = parser.parse_args()
    by_number = {row.number: row for row in rows()}
    chosen = list(MUTANTS) if args.only != "generated" else []
    if args.only != "written":
        chosen += generated(MUTANTS, ROOT)
    if args.rows:
        numbers = set(args.rows.split(","))
        if unknown := numbers - by_number.keys():
            parser.error(f"docs/kips.md has no row {', '.join(sorted(unknown))}")
        chosen = [mutant for mutant in chosen if numbers & set(mutant.rows)]
    if args.unit or args.cluster:
        chosen = [
            mutant for mutant in chosen if _has_unit_tests(mutant, by_number) is not args.cluster
        ]
    if args.fraction:
        print(f"seed {args.seed}", flush=True)
        count = max(1, round(len(chosen) * args.fraction))
        chosen = random.Random(args.seed).sample(chosen, count)
    with tempfile.TemporaryDirectory(prefix="kips-") as folder:
        trees = [Tree(Path(folder) / str(number)) for number in range(args.workers)]
        proof = Proof(by_number, trees, unit_only=args.unit)
        if wrong := proof.unmutated(chosen):
            for test, ends in wrong.items():
                print(f"{test} {' and '.join(sorted(ends)) or 'did not run'}, without a mutant")
            print("First make these tests pass: a failing test detects no mutant.", file=sys.stderr)
            return ExitCode.CANNOT_RUN
        results = proof.mutated(chosen)
    are_written_killed = _summary(
        [result for result in results if result.mutant.needs_every_row], by_number
    )
    is_enough = _summary_of_generated(
        [result for result in results if not result.mutant.needs_every_row]
    )
    return ExitCode.OK if are_written_killed and is_enough else ExitCode.FAILED


def _has_unit_tests(mutant: Mutant, by_number: Mapping[str, Row]) -> bool:
    return any(test.startswith(UNIT) for row in mutant.rows for test in by_number[row].tests)


def _summary(results: Sequence[Result], by_number: Mapping[str, Row]) -> bool:
    """Print the results of the written mutants; return whether every mutant was killed."""
    implemented = [row.number for row in by_number.values() if row.is_implemented]
    without = [(row, gap.reason) for gap in WITHOUT for row in gap.rows if row in implemented]
    print(f"\nrows       {len(by_number):4}, implemented {len(implemented)}")
    print(f"mutants    {len(MUTANTS):4}, tried {len(results)}")
    for verdict in Verdict:
        of_verdict = [result for result in results if result.verdict is verdict]
        print(f"{verdict.name.lower():10} {len(of_verdict):4} {verdict.value}")
        if verdict is not Verdict.KILLED:
            print(*(f"  {result}\n" for result in of_verdict), sep="", end="")
    print(f"no mutant  {len(without):4}")
    print(*(f"  {row}: {reason}\n" for row, reason in without), sep="", end="")
    return all(result.verdict is Verdict.KILLED for result in results)


def _summary_of_generated(results: Sequence[Result]) -> bool:
    """Print the generated mutants that survive; return whether they are few."""
    survivors = [result for result in results if result.verdict is not Verdict.KILLED]
    explained = {str(one.mutant): EXPLAINED.get(str(one.mutant)) for one in survivors}
    print(f"\ngenerated  {len(results):4}, killed {len(results) - len(survivors)}")
    unexplained = [result for result in survivors if not explained[str(result.mutant)]]
    print(f"survived   {len(unexplained):4}")
    print(*(f"  {result}\n" for result in unexplained), sep="", end="")
    print(f"explained  {len(survivors) - len(unexplained):4}")
    print(*(f"  {mutant}: {why}\n" for mutant, why in explained.items() if why), sep="", end="")
    return len(unexplained) <= SURVIVORS_MAX * len(results)


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # `timeout` sends it.
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit(ExitCode.INTERRUPTED)
