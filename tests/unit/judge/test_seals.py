"""The judge and the pipeline detect changed evidence: they reject the run or return UNKNOWN.

The run violates F1 (principal_is_preserved), and most changes hide the violation. A changed run
passes in two cases: it was sealed again and no key is used, or its seal was removed and
`--unsealed` is given.
"""

from __future__ import annotations

import json
import stat
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path

import pytest

from event_log.evidence import MANIFEST, RUN, RunDescription
from judge.__main__ import main as judge_main
from judge.evidence.__main__ import main as evidence_main
from judge.evidence.run_files import EvidenceError
from judge.evidence.run_lookup import read_run
from judge.exit_codes import CANNOT_RUN, UNDECIDED
from judge.history import History
from judge.properties import PROPERTY_SPECS
from judge.seals import (
    KEY_BYTES_MAX,
    SIGNATURE,
    UNSEALED,
    UNSIGNED,
    SealError,
    SealRules,
    read_key,
    seal_rules,
)
from judge.verdicts import Count, Verdict, judge, worst
from pipeline.__main__ import main as pipeline_main
from pipeline.evidence import PipelineEvidenceError as PipelineError
from pipeline.evidence import find_runs
from pipeline.verdicts import verdict_rows
from tests import golden_histories

OURS, OTHER = b"a key of the tests, 32 bytes lo", b"another key, of somebody else.."
REJECTED = "rejected"


def key_file(path: Path, key: bytes = OURS) -> Path:
    path.write_bytes(key + b"\n")
    path.chmod(0o600)
    return path


def failing_run(folder: Path, key: Path | None) -> Path:
    """Write a sealed run that violates F1."""
    golden = golden_histories.load("principal_not_preserved")
    events_only = {"expected": ["F1", "F5", "K2", "K3", "K6"]}
    run = folder / "run=golden"
    golden_histories.expand({**golden, "zookeeper": None, "run": events_only}, run)
    described = RunDescription(run_id=golden_histories.RUN_ID, expected=events_only["expected"])
    (run / RUN).write_text(json.dumps(asdict(described)), encoding="utf-8")
    seal(run, key)
    return run


def seal(run: Path, key: Path | None) -> None:
    arguments = ["seal", str(run), *([] if key is None else [f"--seal-key={key}"])]
    assert evidence_main(arguments) == 0


def hide_violation(run: Path) -> None:
    path = run / "node=1" / "events-a-0000.jsonl"
    text = path.read_text(encoding="utf-8")
    changed = text.replace('"principal": "User:broker"', '"principal": "User:alice"')
    assert changed != text
    path.write_text(changed, encoding="utf-8")


def nothing(_: Path) -> None:
    """Do not tamper with the run."""


def remove_manifest(run: Path) -> None:
    hide_violation(run)
    (run / MANIFEST).unlink()


def remove_manifest_and_signature(run: Path) -> None:
    remove_manifest(run)
    (run / SIGNATURE).unlink(missing_ok=True)


def seal_again(run: Path) -> None:
    hide_violation(run)
    seal(run, None)


def seal_again_beside_the_signature(run: Path) -> None:
    before = (run / SIGNATURE).read_bytes()
    seal_again(run)
    (run / SIGNATURE).write_bytes(before)


def seal_with_other_key(run: Path) -> None:
    hide_violation(run)
    seal(run, key_file(run.parent / "other", OTHER))


def empty_signature(run: Path) -> None:
    (run / SIGNATURE).write_bytes(b"")


def change_manifest(run: Path) -> None:
    path = run / MANIFEST
    path.write_bytes(path.read_bytes().replace(b'"sealed_ms": ', b'"sealed_ms": 1'))


def plain_verdict(run: Path, rules: SealRules) -> tuple[str, str, dict[str, Count]]:
    """Return the verdict, the doubt about the evidence ("" if none), and the counts."""
    try:
        evidence = read_run(run, rules)
    except EvidenceError:
        return REJECTED, "", {}
    rows = [judgement.row for judgement in judge(History(evidence))]
    counts = {row.property: Count(row.judged, row.violations, row.why) for row in rows}
    return worst(rows), evidence.doubt, counts


def pipeline_verdict(
    run: Path, rules: SealRules, copies: Path, counts: dict[str, Count]
) -> tuple[str, str]:
    copies.mkdir()
    try:
        (run_found,) = find_runs(run, rules, copies=copies)
    except PipelineError:
        return REJECTED, ""
    return worst(verdict_rows(run_found, counts, {})), run_found.doubt


@pytest.mark.parametrize(
    ("signed", "tamper", "options", "verdict", "doubt"),
    [
        (False, nothing, (), Verdict.FAIL, ""),
        (False, hide_violation, (), REJECTED, ""),
        (False, remove_manifest, (), Verdict.UNKNOWN, UNSEALED),
        (False, remove_manifest, ("--unsealed",), Verdict.PASS, ""),
        # The digests do not reveal that a run was sealed again. A signature does.
        (False, seal_again, (), Verdict.PASS, ""),
        (False, nothing, ("--seal-key",), Verdict.FAIL, UNSIGNED),
        (True, nothing, ("--seal-key",), Verdict.FAIL, ""),
        (True, nothing, (), Verdict.FAIL, ""),
        (True, hide_violation, ("--seal-key",), REJECTED, ""),
        (True, remove_manifest, ("--seal-key",), Verdict.UNKNOWN, UNSEALED),
        (True, remove_manifest_and_signature, ("--seal-key",), Verdict.UNKNOWN, UNSEALED),
        (True, seal_again, ("--seal-key",), Verdict.UNKNOWN, UNSIGNED),
        (True, seal_again_beside_the_signature, ("--seal-key",), REJECTED, ""),
        (True, seal_with_other_key, ("--seal-key",), REJECTED, ""),
        (True, empty_signature, ("--seal-key",), REJECTED, ""),
        (True, change_manifest, ("--seal-key",), REJECTED, ""),
    ],
)
def test_changed_evidence_passes_only_without_a_seal_or_key(
    signed: bool,
    tamper: Callable[[Path], None],
    options: tuple[str, ...],
    verdict: str,
    doubt: str,
    tmp_path: Path,
) -> None:
    key = key_file(tmp_path / "key")
    run = failing_run(tmp_path, key if signed else None)
    tamper(run)
    used_key = key if "--seal-key" in options else None
    rules = seal_rules(used_key, accept_unsealed="--unsealed" in options)
    *judged, counts = plain_verdict(run, rules)
    assert judged == [verdict, doubt]
    assert pipeline_verdict(run, rules, tmp_path / "copies", counts) == (verdict, doubt)
    arguments = [f"--seal-key={key}" if option == "--seal-key" else option for option in options]
    expected = {"FAIL": 1, "PASS": 0}.get(verdict, UNDECIDED)
    assert judge_main([str(run), *arguments]) == expected
    if verdict == REJECTED:  # The other verdicts need Spark.
        out = tmp_path / "out"
        rejected = ["run", f"--evidence={run}", f"--out={out}", *arguments]
        assert pipeline_main(rejected) == UNDECIDED


def test_no_property_of_an_unsealed_run_passes_by_default(tmp_path: Path) -> None:
    """This includes properties that need no evidence and properties that allow gaps in it."""
    run = failing_run(tmp_path, None)
    remove_manifest(run)
    rows = [judgement.row for judgement in judge(History(read_run(run)))]
    assert len(rows) == len(PROPERTY_SPECS)
    assert {row.verdict for row in rows if row.decides} == {Verdict.UNKNOWN}


@pytest.mark.parametrize(
    ("content", "mode", "sentence"),
    [
        (None, 0o600, "cannot be read: No such file or directory."),
        (b"", 0o600, "has 0 bytes, fewer than 16"),
        (b" \n" * 40, 0o600, "has 0 bytes, fewer than 16"),
        (b"short", 0o600, "has 5 bytes, fewer than 16"),
        (OURS, 0o640, "Other users can read the seal key"),
        (OURS, 0o604, "Other users can read the seal key"),
        (b"x" * (KEY_BYTES_MAX + 1), 0o600, "it has more than 4096 bytes."),
        ("folder", 0o700, "is not a regular file."),
    ],
)
def test_an_unusable_key_file_is_an_error_of_one_sentence(
    content: bytes | str | None,
    mode: int,
    sentence: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    run = failing_run(tmp_path, None)
    path = tmp_path / "key"
    if isinstance(content, bytes):
        path.write_bytes(content)
    elif content is not None:
        path.mkdir()
    if path.exists():
        path.chmod(mode)
    with pytest.raises(SealError) as error:
        read_key(path)
    assert sentence in str(error.value)
    capsys.readouterr()
    option = f"--seal-key={path}"
    out = f"--out={tmp_path / 'out'}"
    assert judge_main([str(run), option]) == CANNOT_RUN
    assert evidence_main(["seal", str(run), option]) == CANNOT_RUN
    assert evidence_main(["check-key", str(path)]) == CANNOT_RUN
    assert pipeline_main(["run", f"--evidence={run}", out, option]) == CANNOT_RUN
    printed = capsys.readouterr()
    assert printed.out == ""
    assert printed.err == f"{error.value}\n" * 4


def test_key_and_unsealed_exclude_each_other(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = failing_run(tmp_path, None)
    arguments = [str(run), "--unsealed", f"--seal-key={key_file(tmp_path / 'key')}"]
    assert judge_main(arguments) == CANNOT_RUN
    assert "exclude each other" in capsys.readouterr().err


def test_judge_names_the_missing_checks_of_the_seal(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = failing_run(tmp_path, key_file(tmp_path / "key"))
    judge_main([str(run)])
    assert "the manifest is signed; --seal-key checks the signature" in capsys.readouterr().out
    (run / MANIFEST).unlink()
    judge_main([str(run)])
    printed = capsys.readouterr().out
    assert f"evidence: {UNSEALED}\n" in printed
    assert "`bridgehead evidence seal`" in printed
    judge_main([str(run), "--unsealed", "--json"])
    assert json.loads(capsys.readouterr().out)["seal"] == "unsealed"


def test_key_is_in_no_file_of_a_signed_run(tmp_path: Path) -> None:
    run = failing_run(tmp_path, key_file(tmp_path / "key"))
    assert not [path for path in run.rglob("*") if path.is_file() and OURS in path.read_bytes()]
    assert OURS.decode() not in repr(SealRules(key=OURS))
    assert stat.S_IMODE((run / SIGNATURE).stat().st_mode) & 0o022 == 0
