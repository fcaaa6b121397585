"""Runs the test suites of released clients on three brokers of Bridgehead, and on a live Kafka.

    python -m tests.fidelity.client_suites --checkout kafka-python=DIR [--checkout …] [--kafka]

Exit code: 1 if a test fails without a reason in `reasons.py`, or if a reason is not needed; 2 if
Kafka is not available.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path
from typing import Final

from tests.fidelity.client_suites.clusters import SYSTEMS
from tests.fidelity.client_suites.page import Run, page
from tests.fidelity.client_suites.reasons import BRIDGEHEAD, KAFKA
from tests.fidelity.client_suites.running import Result, Runner
from tests.fidelity.client_suites.suites import SUITES, Suite
from tests.fidelity.client_suites.verdicts import judge, stale_rows
from tests.fidelity.real_kafka import reason_to_skip

_SHOWN: Final = 300  # characters
# A failed test is run again: on three brokers, or on a busy machine, some tests depend on timing.
_ATTEMPTS: Final = 5


def main() -> int:
    """Run the command; return its exit code."""
    arguments = _arguments()
    systems = [KAFKA] if arguments.only_kafka else [BRIDGEHEAD]
    if arguments.kafka:
        systems.append(KAFKA)
    if KAFKA in systems and (reason := reason_to_skip()):
        print(reason, file=sys.stderr)
        return 2
    runs, complaints = [], 0
    for text in arguments.checkout:
        name, _, path = text.partition("=")
        suite, checkout = SUITES[name], Path(path).resolve()
        revision = _revision(checkout)
        results = {system: _run(arguments, suite, checkout, system) for system in systems}
        judged = {
            system: judge(name, system, results_of_system)
            for system, results_of_system in results.items()
        }
        for system in systems:
            complaints += _report(suite, system, results[system], all_ran=not arguments.only)
        runs.append(Run(suite, revision, _version(arguments.python, suite), judged))
    if arguments.page:
        arguments.page.write_text(page(runs))
    return 1 if complaints else 0


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    checkout_help = f"a suite and its checkout; the suites are {', '.join(SUITES)}"
    parser.add_argument(
        "--checkout", action="append", required=True, metavar="SUITE=DIR", help=checkout_help
    )
    parser.add_argument("--kafka", action="store_true", help="also run on a live Kafka")
    parser.add_argument("--only-kafka", action="store_true", help="run only on a live Kafka")
    parser.add_argument("--only", default="", metavar="EXPR", help="pytest's -k")
    parser.add_argument("--page", type=Path, help="write the results to this file")
    parser.add_argument(
        "--python",
        type=Path,
        default=Path(".venv/suites/bin/python"),
        help="the interpreter of requirements/suites.lock",
    )
    arguments = parser.parse_args()
    for text in arguments.checkout:
        name, _, path = text.partition("=")
        if name not in SUITES:
            parser.error(f"--checkout {text}: write {'|'.join(SUITES)}=DIR")
        if not (Path(path) / ".git").exists():
            parser.error(f"--checkout {text}: {path} is not a git checkout")
    arguments.python = arguments.python.absolute()
    return arguments


def _revision(checkout: Path) -> str:
    """Return the tag or commit of an unchanged checkout."""
    git = ["git", "-C", str(checkout)]
    changes = subprocess.check_output([*git, "status", "--porcelain"], text=True)
    if changes:
        raise SystemExit(f"{checkout} has changes:\n{changes}")
    return subprocess.check_output([*git, "describe", "--tags", "--always"], text=True).strip()


def _version(python: Path, suite: Suite) -> str:
    code = f"from importlib.metadata import version; print(version({suite.client!r}))"
    return subprocess.check_output([str(python), "-c", code], text=True).strip()


def _run(arguments: argparse.Namespace, suite: Suite, checkout: Path, system: str) -> list[Result]:
    runner = Runner(suite, checkout, arguments.python)
    with tempfile.TemporaryDirectory(prefix="client-suites-") as temporary:
        folder = Path(temporary)
        with SYSTEMS[system](folder) as listeners:
            return runner.run(listeners, folder / "suite", arguments.only, _ATTEMPTS)


def _report(suite: Suite, system: str, results: list[Result], *, all_ran: bool) -> int:
    """Print what did not pass; return the number of complaints."""
    judged = judge(suite.name, system, results)
    count = Counter(result.verdict for result in judged)
    print(
        f"{suite.name} on {system}: {count['passed']} passed, {count['failed']} failed, "
        f"{count['inapplicable']} inapplicable"
    )
    for result in judged:
        if result.verdict != "passed" or result.reason:
            text = result.reason or f"UNEXPLAINED: {result.message[:_SHOWN]}"
            print(f"  {result.verdict} {result.test}: {text}")
    stale = stale_rows(suite.name, system, results) if all_ran else []
    for row in stale:
        print(f"  The row of {row.test} in reasons.py is not needed.")
    return sum(result.unexplained for result in judged) + len(stale)


if __name__ == "__main__":
    sys.exit(main())
