"""Reads a run's folder: every file is checked against the manifest, every line is accounted for.

It is an error if a file has changed since the run was sealed, or is not in the manifest. It is a
gap if a file of the manifest is missing.
"""

from __future__ import annotations

import hashlib
import json
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from event_log.commits import CommitLine, CommitOperation, CommitOutcome, DumpLine
from event_log.evidence import (
    EVENT_SOURCES,
    FINAL_DUMP,
    MANIFEST,
    Manifest,
    ManifestError,
    ManifestFile,
    manifest_from_json,
)
from judge.evidence.gaps import manifest_gaps, witness_of
from judge.evidence.lines import (
    FileAccount,
    WrongRunError,
    has_unknown_fields,
    judge_event,
    parse_object,
)
from judge.evidence.shapes import COMMIT_SHAPE, DUMP_SHAPE, faults_of
from judge.seals import SIGNATURE, Seal, SealError, SealRules

Event = Mapping[str, Any]
EventKey = tuple[str, str, int]  # node, boot (the life of one process), seq
LINE_SHAPES: Final = {"commits": COMMIT_SHAPE, "dump": DUMP_SHAPE}
_NO_KEY: Final = SealRules()


class EvidenceError(Exception):
    """The folder cannot be judged. The message is one sentence."""


@dataclass(slots=True)
class Evidence:
    """Everything that was read. `gaps` has, for each witness, a sentence for each gap."""

    manifest: Manifest
    events: list[Event] = field(default_factory=list)  # of nodes and of the harness
    clients: list[Event] = field(default_factory=list)
    commits: list[CommitLine] = field(default_factory=list)
    first: dict[str, DumpLine] = field(default_factory=dict)
    final: dict[str, DumpLine] | None = None
    gaps: dict[str, list[str]] = field(default_factory=lambda: defaultdict(list))
    accounts: list[FileAccount] = field(default_factory=list)
    seal: Seal = Seal.UNSIGNED
    doubt: str = ""  # why the evidence may have been changed; see judge.seals
    two_writers: list[EventKey] = field(default_factory=list)  # keys that different events share


def _load_manifest(folder: Path, rules: SealRules) -> tuple[Manifest, Seal]:
    try:
        data = (folder / MANIFEST).read_bytes()
        seal = rules.check(folder / SIGNATURE, data)
        return manifest_from_json(json.loads(data)), seal
    except SealError as error:
        raise EvidenceError(str(error)) from None
    except (OSError, ValueError, ManifestError) as error:
        raise EvidenceError(f"{folder / MANIFEST}: {error}") from None


def read_sealed(folder: Path, rules: SealRules = _NO_KEY) -> Evidence:
    """Read a sealed run.

    Raises:
        EvidenceError: the manifest is invalid or signed with another key, a file has changed or is
            not in the manifest, or a line belongs to another run.
    """
    manifest, seal = _load_manifest(folder, rules)
    named = {listed_file.path for listed_file in manifest.files} | {MANIFEST, SIGNATURE}
    for path in sorted(folder.rglob("*")):
        name = path.relative_to(folder).as_posix()
        if path.is_file() and name not in named:
            raise EvidenceError(f"{name} is not in the manifest: remove it, or seal the run again.")
    evidence = Evidence(manifest, seal=seal, doubt=rules.doubt(seal))
    contents = {listed_file.path: _content(folder, listed_file) for listed_file in manifest.files}
    missing = {path for path, data in contents.items() if data is None}
    for witness, gap in manifest_gaps(manifest, missing):
        evidence.gaps[witness].append(gap)
    event_files = [
        listed_file for listed_file in manifest.files if listed_file.kind in EVENT_SOURCES
    ]
    _read_events(event_files, contents, evidence)
    if manifest.zookeeper.logs:
        for file in manifest.files:
            data = contents[file.path]
            if file.kind in LINE_SHAPES and data is not None:
                _read_zookeeper(file, data, evidence)
    return evidence


def _content(folder: Path, file: ManifestFile) -> bytes | None:
    """Return a file's bytes, None if it does not exist; raise EvidenceError if it has changed."""
    try:
        data = (folder / file.path).read_bytes()
    except FileNotFoundError:
        return None
    except OSError as error:
        raise EvidenceError(f"{file.path} cannot be read: {error.strerror}.") from None
    if change := file.change(len(data), hashlib.sha256(data).hexdigest()):
        raise EvidenceError(f"{file.path} {change}")
    return data


def _read_events(
    files: Sequence[ManifestFile], contents: Mapping[str, bytes | None], evidence: Evidence
) -> None:
    seen: dict[EventKey, Event] = {}
    run_id = evidence.manifest.run.run_id
    for file in sorted(files, key=lambda listed_file: listed_file.path):
        data = contents[file.path]
        account = FileAccount(file.path, file.lines if data is not None else 0)
        evidence.accounts.append(account)
        target = evidence.clients if file.kind == "client" else evidence.events
        lines = split_lines(data or b"")
        for number, line in enumerate(lines, start=1):
            if not line.strip():
                account.blank += 1
                continue
            if number == len(lines) and file.cut and _is_left_open(file, files, seen):
                account.cut += 1
                continue
            event = _event(line, number, account, run_id)
            if isinstance(event, str):
                evidence.gaps[witness_of(file.kind)].append(event)
                continue
            key = (event["node"], event["boot"], event["seq"])
            earlier = seen.setdefault(key, event)
            if earlier is event:
                account.accepted += 1
                target.append(event)
            elif earlier == event:
                account.duplicates += 1
            else:
                account.accepted += 1
                evidence.two_writers.append(key)
    _find_missing_events(seen, evidence)


def split_lines(data: bytes) -> list[bytes]:
    """Return the lines of a file, including a last line without newline."""
    lines = data.split(b"\n")
    if not lines[-1]:
        lines.pop()
    return lines


def _is_left_open(
    file: ManifestFile, files: Sequence[ManifestFile], seen: Mapping[EventKey, Event]
) -> bool:
    """Return whether this is the last segment of a boot that has no `stopped` event."""
    boot, _, _ = file.path.rpartition("-")
    is_last = all(other.path <= file.path for other in files if other.path.startswith(f"{boot}-"))
    name = boot.rpartition("/events-")[2]
    stopped = any(e["kind"] == "stopped" for key, e in seen.items() if key[1] == name)
    return is_last and not stopped


def _event(line: bytes, number: int, account: FileAccount, run_id: str) -> Event | str:
    """Return the event of a line, or a sentence that says why the line is quarantined."""
    value = parse_object(line)
    try:
        reasons = (value,) if isinstance(value, str) else judge_event(value, run_id)
    except WrongRunError as error:
        raise EvidenceError(
            f"{account.path}:{number} is of run {error}, not of {run_id}: remove the file."
        ) from None
    if reasons:
        return account.quarantine(number, reasons)
    assert isinstance(value, dict)
    account.unknown_fields += has_unknown_fields(value)
    return value


def _find_missing_events(seen: Mapping[EventKey, Event], evidence: Evidence) -> None:
    """Add a gap for each boot that lacks events, and for each boot without a recorded end."""
    boots: dict[tuple[str, str], list[int]] = defaultdict(list)
    ended = set()
    for (node, boot, seq), event in seen.items():
        boots[node, boot].append(seq)
        if event["kind"] == "stopped":
            ended.add((node, boot))
        elif event["kind"] == "node_ended":
            ended.add((event["ended_node"], event["ended_boot"]))
    for (node, boot), numbers in sorted(boots.items()):
        gaps = evidence.gaps["clients" if node.startswith("client-") else "events"]
        expected = max(numbers) + 1
        if missing := expected - len(numbers):
            gaps.append(f"node {node} boot {boot}: {missing} of {expected} events missing")
        if (node, boot) not in ended:
            gaps.append(f"node {node} boot {boot}: its end is not recorded")


def _read_zookeeper(file: ManifestFile, data: bytes, evidence: Evidence) -> None:
    """Read a file of commit lines or of a dump."""
    account = FileAccount(file.path, file.lines)
    evidence.accounts.append(account)
    values = []
    for number, line in enumerate(split_lines(data), start=1):
        if not line.strip():
            account.blank += 1
            continue
        value = parse_object(line)
        reasons: tuple[str, ...] = (value,) if isinstance(value, str) else ()
        if isinstance(value, dict):
            reasons = faults_of(value, LINE_SHAPES[file.kind])
        if reasons:
            evidence.gaps["commits"].append(account.quarantine(number, reasons))
            continue
        assert isinstance(value, dict)
        account.accepted += 1
        values.append(value)
    if file.kind == "commits":
        evidence.commits += map(_commit, values)
        return
    dump = {line.path: line for line in (_known(DumpLine, row) for row in values)}
    if file.path == FINAL_DUMP:
        evidence.final = dump
    else:
        evidence.first = dump


def _commit(value: Mapping[str, Any]) -> CommitLine:
    operations = [_known(CommitOperation, operation) for operation in value["operations"]]
    outcomes = [_known(CommitOutcome, outcome) for outcome in value["outcomes"]]
    line: CommitLine = _known(CommitLine, {**value, "operations": operations, "outcomes": outcomes})
    return line


def _known(kind: Any, value: Mapping[str, Any]) -> Any:
    return kind(**{name: value[name] for name in kind.__dataclass_fields__})
