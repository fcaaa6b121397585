"""`python -m judge DIR`: judge the evidence of one run.

Prints for each property its verdict, the number of rows judged, and the first violations. DIR is a
cluster's data directory (its last run is judged) or the folder of one run. Exit code: 0 if all
expected properties hold, 1 if one of them does not, 3 if the verdict is undecided (also if the
judge itself fails), 4 if the seal key cannot be used, the report cannot be written, or TLC
cannot run.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Final

from judge.evidence.kafka_logs import HEALTHY_KAFKA
from judge.evidence.reading import Evidence
from judge.evidence.run_files import EvidenceError
from judge.evidence.run_lookup import read_run
from judge.exit_codes import CANNOT_RUN, INTERRUPTED
from judge.history import History
from judge.properties import PROPERTY_SPECS
from judge.report.page import page
from judge.seals import Seal, SealError, seal_rules
from judge.spec.report import lines_of, report_on
from judge.spec.tlc import TlcError, find_tlc
from judge.terminal import INDENT, complain, complain_of_crash, say, say_some, say_wrapped
from judge.verdicts import Judgement, Verdict, exit_code, judge, worst

SCHEMA_VERSION = 1  # of the JSON document; bridgehead/schema_version.py says when to increment it
_ADVICE: Final = {
    Seal.UNSEALED: "seal the run with `bridgehead down` if the cluster still runs, otherwise with "
    "`bridgehead evidence seal`; --unsealed trusts the run as it is",
    Seal.UNCHECKED: "the manifest is signed; --seal-key checks the signature",
}


class _ReportError(Exception):
    """The report cannot be written. The text is one sentence."""


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
    parser.add_argument(
        "--spec", action="store_true", help="let TLC explain the run by spec/Forwarding.tla instead"
    )
    options = parser.parse_args(arguments)
    if options.spec and options.html is not None:
        parser.error("--html has no report of the specification: leave --html or --spec out")
    try:
        verdict = _judge(options)
    except BrokenPipeError:  # The output is closed; the caller handles it.
        raise
    except (SealError, TlcError, _ReportError) as error:
        complain(error)
        return CANNOT_RUN
    except KeyboardInterrupt:
        sys.stderr.write("Interrupted, so there is no verdict: run the command again.\n")
        return INTERRUPTED
    except (EvidenceError, OSError) as error:
        complain(error)
        verdict = Verdict.NODATA
    except Exception as crash:  # Python's own exit code would be 1: a property is violated.
        complain_of_crash(crash)
        verdict = Verdict.CRASHED
    return exit_code(verdict)


def _judge(options: argparse.Namespace) -> Verdict:
    rules = seal_rules(options.seal_key, accept_unsealed=options.unsealed)
    if options.spec:
        find_tlc()  # To read the evidence may take minutes.
    evidence = read_run(options.folder, rules)
    if options.spec:
        return _judge_by_specification(evidence, as_json=options.json)
    history = History(evidence)
    judgements = judge(history)
    verdict = worst(judgement.row for judgement in judgements)
    if options.html is not None:
        try:
            report = page(history, judgements, verdict, str(options.folder.resolve()))
            options.html.write_text(report, encoding="utf-8")
        except OSError as error:
            raise _ReportError(f"{options.html} cannot be written: {error.strerror}.") from error
    if options.json:
        print(json.dumps(_document(judgements, verdict, evidence), indent=2))
    else:
        _print(judgements, verdict, evidence)
    return verdict


def _judge_by_specification(evidence: Evidence, *, as_json: bool) -> Verdict:
    report = report_on(evidence)
    if as_json:
        document = {"schema_version": SCHEMA_VERSION, **asdict(report)}
        for misfit in document["misfits"]:
            misfit["slice"] = misfit["slice"]["name"]
        print(json.dumps(document, indent=2))
    else:
        for line in lines_of(report):
            say(line)
    return report.verdict


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
        say(f"{verdict_shown:10}{row.property:4}{row.name:38}{row.judged:8} judged")
        if row.verdict is not Verdict.PASS:
            say_wrapped(statements[row.property], INDENT)
        sentences = [violation.sentence for violation in violations]
        if row.why and row.why not in (evidence.doubt, *sentences[:1]):
            sentences.insert(0, row.why)
        say_some(sentences, INDENT)
    for witness, gaps in evidence.gaps.items():
        say_some(gaps, f"evidence: {witness}: ")
    if any(file.kind.startswith("kafka_") for file in evidence.manifest.files):
        say_wrapped(HEALTHY_KAFKA, "evidence: ")
    cut = sum(account.cut for account in evidence.accounts)
    if cut:
        say(f"evidence: the last line of {cut} files is incomplete, because a process was killed")
    if evidence.doubt:
        say(f"evidence: {evidence.doubt}")
    if evidence.seal in _ADVICE:
        say(f"evidence: {_ADVICE[evidence.seal]}")
    run_id = evidence.manifest.run.run_id
    say(f"{verdict:10}run {run_id}; verdicts in parentheses do not count")


if __name__ == "__main__":
    sys.exit(main())
