"""`python -m chaos.judge DIR`: do the promises hold on this run's evidence? Exit 0, 1 or 2.

Reads what the nodes wrote and what ZooKeeper wrote, and prints one line for each property: its
verdict, how many rows were judged, and the first counter-example.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from pathlib import Path

from chaos.history import EvidenceError, History, read_history
from chaos.properties import PROPERTIES
from chaos.verdicts import Judgement, Verdict, exit_code, judge, worst
from chaos.witness import TornLogError

_SHOWN_MAX = 5


def main(arguments: Sequence[str] | None = None) -> int:
    """Judge one folder; return the exit code."""
    parser = argparse.ArgumentParser(prog="bridgehead judge", description=__doc__)
    parser.add_argument("folder", type=Path, help="the data directory of a run")
    parser.add_argument("--json", action="store_true", help="print one JSON document")
    options = parser.parse_args(arguments)
    try:
        history = read_history(options.folder)
    except (EvidenceError, TornLogError, OSError) as wrong:
        print(wrong, file=sys.stderr)
        return exit_code(Verdict.NODATA)
    judgements = list(judge(history, PROPERTIES))
    verdict = worst(judgements)
    if options.json:
        print(json.dumps(_document(judgements, verdict), indent=2))
    else:
        _print(judgements, verdict, history)
    return exit_code(verdict)


def _document(judgements: Sequence[Judgement], verdict: Verdict) -> dict[str, object]:
    return {
        "verdict": verdict.value,
        "properties": [
            {
                "id": each.property.id,
                "name": each.property.name,
                "verdict": each.verdict.value,
                "judged": each.judged,
                "violations": list(each.violations),
                "why": each.why,
            }
            for each in judgements
        ],
    }


def _print(judgements: Sequence[Judgement], verdict: Verdict, history: History) -> None:
    for each in judgements:
        of = each.property
        print(f"{each.verdict.value:8}{of.id:4}{of.name:26}{each.judged:8} judged   {of.promise}")
        shown = each.violations[:_SHOWN_MAX] or ((each.why,) if each.why else ())
        for sentence in shown:
            print(f"            {sentence}")
        if len(each.violations) > _SHOWN_MAX:
            print(f"            ... and {len(each.violations) - _SHOWN_MAX} more")
    for hole in history.holes[:_SHOWN_MAX]:
        print(f"evidence: {hole}")
    if history.torn_lines:
        print(f"evidence: {history.torn_lines} last lines were cut off by a kill")
    print(f"{verdict.value:8}the run")


if __name__ == "__main__":
    sys.exit(main())
