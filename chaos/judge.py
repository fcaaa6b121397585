"""`python -m chaos.judge DIR`: do the promises hold on this run's evidence? Exit 0, 1 or 2.

Reads what nodes, clients and ZooKeeper wrote, and prints one line for each property: its verdict,
how many rows were judged, and the first counter-examples. DIR is a cluster's data directory (its
last run is judged) or the folder of one run.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

from chaos.evidence.finding import read_run
from chaos.evidence.reading import Evidence, EvidenceError
from chaos.history import History
from chaos.properties import PROPERTIES
from chaos.verdicts import Judgement, Verdict, exit_code, judge, worst

_SHOWN_MAX = 5


def main(arguments: Sequence[str] | None = None) -> int:
    """Judge one folder; return the exit code."""
    parser = argparse.ArgumentParser(prog="bridgehead judge", description=__doc__)
    parser.add_argument("folder", type=Path, help="the data directory of a run")
    parser.add_argument("--json", action="store_true", help="print one JSON document")
    options = parser.parse_args(arguments)
    try:
        evidence = read_run(options.folder)
    except (EvidenceError, OSError) as wrong:
        print(wrong, file=sys.stderr)
        return exit_code(Verdict.NODATA)
    judgements = list(judge(History(evidence), PROPERTIES))
    verdict = worst(judgements)
    if options.json:
        print(json.dumps(_document(judgements, verdict, evidence), indent=2))
    else:
        _print(judgements, verdict, evidence)
    return exit_code(verdict)


def _document(
    judgements: Sequence[Judgement], verdict: Verdict, evidence: Evidence
) -> dict[str, object]:
    return {
        "run_id": evidence.run.run_id,
        "scenario": evidence.run.scenario,
        "seed": evidence.run.seed,
        "sealed": not evidence.unsealed,
        "verdict": verdict.value,
        "properties": [
            {
                **asdict(each.row()),
                "violations": [asdict(violation) for violation in each.violations],
            }
            for each in judgements
        ],
        "holes": {witness: holes for witness, holes in evidence.holes.items() if holes},
        "files": [
            {
                "path": account.path,
                "lines": account.lines,
                "accepted": account.accepted,
                "quarantined": len(account.quarantined),
                "duplicates": account.duplicates,
                "blank": account.blank,
                "cut": account.cut,
            }
            for account in evidence.accounts
        ],
    }


def _print(judgements: Sequence[Judgement], verdict: Verdict, evidence: Evidence) -> None:
    for each in judgements:
        of = each.property
        word = each.verdict.value if each.decides else f"({each.verdict.value})"
        print(f"{word:10}{of.id:4}{of.name:38}{each.judged:8} judged   {of.promise}")
        shown = [violation.sentence for violation in each.violations[:_SHOWN_MAX]]
        if each.verdict is not Verdict.FAIL and each.why:
            shown.insert(0, each.why)
        for sentence in shown:
            print(f"              {sentence}")
        if len(each.violations) > _SHOWN_MAX:
            print(f"              ... and {len(each.violations) - _SHOWN_MAX} more (--json)")
    for witness, holes in evidence.holes.items():
        for hole in holes[:_SHOWN_MAX]:
            print(f"evidence: {witness}: {hole}")
        if len(holes) > _SHOWN_MAX:
            print(f"evidence: {witness}: ... and {len(holes) - _SHOWN_MAX} more (--json)")
    cut = sum(account.cut for account in evidence.accounts)
    if cut:
        print(f"evidence: {cut} last lines were cut off by a kill")
    if evidence.unsealed:
        print("evidence: this run is not sealed; `bridgehead down` ends and seals it.")
    print(f"{verdict.value:10}run {evidence.run.run_id}; what stands in brackets does not decide")


if __name__ == "__main__":
    sys.exit(main())
