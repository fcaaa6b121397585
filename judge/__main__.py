"""`python -m judge DIR`: judge the evidence of one run.

Prints for each property its verdict, the number of rows judged, and the first violations. DIR is a
cluster's data directory (its last run is judged) or the folder of one run. Exit code: 0 if all
expected properties hold, 1 if one of them does not, 3 if the verdict is undecided, 4 if the seal
key cannot be used.
"""

from __future__ import annotations

import argparse
import json
import shutil
import sys
import textwrap
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Final

from judge.evidence.kafka_logs import HEALTHY_KAFKA
from judge.evidence.reading import Evidence, EvidenceError
from judge.evidence.run_lookup import read_run
from judge.exit_codes import CANNOT_RUN
from judge.history import History
from judge.properties import PROPERTY_SPECS
from judge.report.page import page
from judge.seals import Seal, SealError, seal_rules
from judge.verdicts import Judgement, Verdict, exit_code, judge, worst

SCHEMA_VERSION = 1  # of the JSON document; bridgehead/schema_version.py says when to increment it
_SHOWN_MAX = 5
_INDENT: Final = " " * 14
_ADVICE: Final = {
    Seal.UNSEALED: "seal the run with `bridgehead down` if the cluster still runs, otherwise with "
    "`bridgehead evidence seal`; --unsealed trusts the run as it is",
    Seal.UNCHECKED: "the manifest is signed; --seal-key checks the signature",
}


def main(arguments: Sequence[str] | None = None) -> int:
    """Judge one folder; return the exit code."""
    parser = argparse.ArgumentParser(prog="bridgehead judge", description=__doc__)
    parser.add_argument(
        "folder", type=Path, help="a cluster's data directory, or the folder of a run"
    )
    parser.add_argument("--json", action="store_true", help="print one JSON document")
    parser.add_argument("--seal-key", type=Path, help="the key that must have signed the manifest")
    parser.add_argument("--unsealed", action="store_true", help="trust a run that is not sealed")
    parser.add_argument("--html", type=Path, help="write the report to this file, without Spark")
    options = parser.parse_args(arguments)
    try:
        rules = seal_rules(options.seal_key, accept_unsealed=options.unsealed)
        evidence = read_run(options.folder, rules)
    except SealError as error:
        print(error, file=sys.stderr)
        return CANNOT_RUN
    except (EvidenceError, OSError) as error:
        print(error, file=sys.stderr)
        return exit_code(Verdict.NODATA)
    history = History(evidence)
    judgements = judge(history)
    verdict = worst(judgement.row for judgement in judgements)
    if options.html is not None:
        try:
            report = page(history, judgements, verdict, str(options.folder.resolve()))
            options.html.write_text(report, encoding="utf-8")
        except OSError as error:
            print(f"{options.html} cannot be written: {error.strerror}.", file=sys.stderr)
            return CANNOT_RUN
    if options.json:
        print(json.dumps(_document(judgements, verdict, evidence), indent=2))
    else:
        _print(judgements, verdict, evidence)
    return exit_code(verdict)


def _document(
    judgements: Sequence[Judgement], verdict: Verdict, evidence: Evidence
) -> dict[str, object]:
    run = evidence.manifest.run
    return {
        "schema_version": SCHEMA_VERSION,
        "run_id": run.run_id,
        "scenario": run.scenario,
        "seed": run.seed,
        "sealed": evidence.seal is not Seal.UNSEALED,
        "seal": evidence.seal,
        "verdict": verdict,
        "properties": [
            {**asdict(row), "violations": [asdict(violation) for violation in violations]}
            for row, violations in judgements
        ],
        "gaps": {witness: gaps for witness, gaps in evidence.gaps.items() if gaps},
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
    statements = {spec.id: spec.statement for spec in PROPERTY_SPECS}
    for row, violations in judgements:
        verdict_shown = row.verdict if row.decides else f"({row.verdict})"
        print(f"{verdict_shown:10}{row.property:4}{row.name:38}{row.judged:8} judged")
        if row.verdict is not Verdict.PASS:
            _print_wrapped(statements[row.property], _INDENT)
        sentences = [violation.sentence for violation in violations]
        if row.why and row.why not in (evidence.doubt, *sentences[:1]):
            sentences.insert(0, row.why)
        _print_some(sentences, _INDENT)
    for witness, gaps in evidence.gaps.items():
        _print_some(gaps, f"evidence: {witness}: ")
    if any(file.kind.startswith("kafka_") for file in evidence.manifest.files):
        _print_wrapped(HEALTHY_KAFKA, "evidence: ")
    cut = sum(account.cut for account in evidence.accounts)
    if cut:
        print(f"evidence: the last line of {cut} files is incomplete, because a process was killed")
    if evidence.doubt:
        print(f"evidence: {evidence.doubt}")
    if evidence.seal in _ADVICE:
        print(f"evidence: {_ADVICE[evidence.seal]}")
    run_id = evidence.manifest.run.run_id
    print(f"{verdict:10}run {run_id}; verdicts in parentheses do not count")


def _print_some(sentences: Sequence[str], prefix: str) -> None:
    for sentence in sentences[:_SHOWN_MAX]:
        _print_wrapped(sentence, prefix)
    if len(sentences) > _SHOWN_MAX:
        print(f"{prefix}... and {len(sentences) - _SHOWN_MAX} more (--json)")


def _print_wrapped(sentence: str, prefix: str) -> None:
    """Print a sentence in lines as wide as the terminal (80 columns if there is none)."""
    lines = textwrap.wrap(
        sentence,
        width=shutil.get_terminal_size().columns,
        initial_indent=prefix,
        subsequent_indent=_INDENT,
        break_long_words=False,  # A name is never cut.
        break_on_hyphens=False,
    )
    print("\n".join(lines))


if __name__ == "__main__":
    sys.exit(main())
