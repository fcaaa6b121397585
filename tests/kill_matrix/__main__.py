"""Prove that the judge can fail: judge every evidence mutant, and compare with the kill matrix.

python -m tests.kill_matrix
"""

from __future__ import annotations

import sys
import tempfile
from collections import Counter
from pathlib import Path

from bridgehead.exit_codes import ExitCode
from judge.properties import PROPERTY_SPECS
from tests.kill_matrix.evidence_mutants import EVIDENCE_MUTANTS
from tests.kill_matrix.golden import verdict_on


def main() -> int:
    """Return an exit code of bridgehead.exit_codes."""
    kills, wrong = Counter[str](), 0
    for mutant in EVIDENCE_MUTANTS:
        with tempfile.TemporaryDirectory(prefix="prove-judge-") as folder:
            violated, run = verdict_on(mutant, Path(folder))
        kills.update(violated)
        print(f"{run:7} {' '.join(violated):12} {mutant.history}: {mutant.title}")
        if (violated, run) != (mutant.violates, mutant.run):
            wrong += 1
            print(f"        expected {mutant.run} {' '.join(mutant.violates)}")
    print("\nmutants found by each property")
    print(" ".join(f"{spec.id}:{kills[spec.id]}" for spec in PROPERTY_SPECS))
    print(f"{len(EVIDENCE_MUTANTS)} mutants, {wrong} with another verdict than expected")
    return ExitCode.FAILED if wrong else ExitCode.OK


if __name__ == "__main__":
    sys.exit(main())
