"""Prove that the tests of docs/kips.md can fail: each row's tests must detect its mutants.

python -m tests.kips [--rows 590.9,590.10] [--fraction 0.1 [--seed N]] [--workers N]
"""

from __future__ import annotations

import argparse
import random
import signal
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path

from bridgehead.exit_codes import ExitCode
from tests.kips.proof import Proof, Verdict
from tests.kips.registry import MUTANTS, WITHOUT
from tests.kips.tree import Tree
from tools.kip_rows import Row, rows


def main() -> int:
    """Return an exit code of bridgehead.exit_codes."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--rows", help="only the mutants of these rows, such as 590.9,590.10")
    parser.add_argument("--fraction", type=float, help="only a random part of the mutants")
    parser.add_argument("--seed", type=int, default=random.randrange(10**6))
    parser.add_argument("--workers", type=int, default=1, help="copies that are tested at a time")
    args = parser.parse_args()
    by_number = {row.number: row for row in rows()}
    chosen = list(MUTANTS)
    if args.rows:
        numbers = set(args.rows.split(","))
        if unknown := numbers - by_number.keys():
            parser.error(f"docs/kips.md has no row {', '.join(sorted(unknown))}")
        chosen = [mutant for mutant in chosen if numbers & set(mutant.rows)]
    if args.fraction:
        print(f"seed {args.seed}", flush=True)
        count = max(1, round(len(chosen) * args.fraction))
        chosen = random.Random(args.seed).sample(chosen, count)
    with tempfile.TemporaryDirectory(prefix="kips-") as folder:
        trees = [Tree(Path(folder) / str(number)) for number in range(args.workers)]
        proof = Proof(by_number, trees)
        if wrong := proof.unmutated(chosen):
            for test, ends in wrong.items():
                print(f"{test} {' and '.join(sorted(ends)) or 'did not run'}, without a mutant")
            print("First make these tests pass: a failing test detects no mutant.", file=sys.stderr)
            return ExitCode.CANNOT_RUN
        results = proof.mutated(chosen)
    return _summary(results, by_number)


def _summary(results: list[tuple[Verdict, str]], by_number: Mapping[str, Row]) -> int:
    implemented = [row.number for row in by_number.values() if row.is_implemented]
    without = [(row, gap.reason) for gap in WITHOUT for row in gap.rows if row in implemented]
    print(f"\nrows       {len(by_number):4}, implemented {len(implemented)}")
    print(f"mutants    {len(MUTANTS):4}, tried {len(results)}")
    for verdict in Verdict:
        lines = [line for result_verdict, line in results if result_verdict is verdict]
        print(f"{verdict.name.lower():10} {len(lines):4} {verdict.value}")
        if verdict is not Verdict.KILLED:
            print(*(f"  {line}\n" for line in lines), sep="", end="")
    print(f"no mutant  {len(without):4}")
    print(*(f"  {row}: {reason}\n" for row, reason in without), sep="", end="")
    is_proved = all(verdict is Verdict.KILLED for verdict, _ in results)
    return ExitCode.OK if is_proved else ExitCode.FAILED


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # `timeout` sends it.
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit(ExitCode.INTERRUPTED)
