"""Reads a run's folder: every file is checked against the manifest, every line is accounted for.

It is an error if a file has changed since the run was sealed, or is not in the manifest. It is a
gap if a file of the manifest is missing.
"""

from __future__ import annotations

import hashlib
import os
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
    MANIFEST_BYTES_MAX,
    Manifest,
    ManifestError,
    ManifestFile,
    manifest_from_json,
    parse_document,
)
from judge.evidence.gaps import manifest_gaps, witness_of
from judge.evidence.lines import (
    FileAccount,
    WrongRunError,
    has_unknown_fields,
    judge_event,
    parse_object,
)
from judge.evidence.run_files import EvidenceError, open_file, read_file, run_files
from judge.evidence.shapes import COMMIT_SHAPE, DUMP_SHAPE, faults_of
from judge.seals import SIGNATURE, SIGNATURE_BYTES_MAX, Seal, SealError, SealRules

Event = Mapping[str, Any]
EventKey = tuple[str, str, int]  # node, boot (the life of one process), seq
LINE_SHAPES: Final = {"commits": COMMIT_SHAPE, "dump": DUMP_SHAPE}
_NO_KEY: Final = SealRules()


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


def _load_manifest(
    folder: Path, sizes: Mapping[str, int], rules: SealRules
) -> tuple[Manifest, Seal]:
    signed = None
    try:
        data = read_file(folder, MANIFEST, MANIFEST_BYTES_MAX)
        if SIGNATURE in sizes:
            signed = read_file(folder, SIGNATURE, SIGNATURE_BYTES_MAX)
        seal = rules.check(signed, data, folder / SIGNATURE)
        return manifest_from_json(parse_document(data)), seal
    except SealError as error:
        raise EvidenceError(str(error)) from None
    except (OSError, ValueError, ManifestError) as error:
        raise EvidenceError(f"{folder / MANIFEST}: {error}") from None


def read_sealed(folder: Path, rules: SealRules = _NO_KEY) -> Evidence:
    """Read a sealed run.

    Raises:
        EvidenceError: the manifest is invalid or signed with another key, a file has changed, is
            not in the manifest or is not a regular file, or a line belongs to another run.
    """
    sizes = run_files(folder)
    manifest, seal = _load_manifest(folder, sizes, rules)
    named = {listed_file.path for listed_file in manifest.files} | {MANIFEST, SIGNATURE}
    for name in sizes:
        if name not in named:
            raise EvidenceError(f"{name} is not in the manifest: remove it, or seal the run again.")
    _check_memory(sum(file.bytes for file in manifest.files))
    evidence = Evidence(manifest, seal=seal, doubt=rules.doubt(seal))
    contents = {
        listed_file.path: _content(folder, listed_file, sizes.get(listed_file.path))
        for listed_file in manifest.files
    }
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


def _check_memory(needed: int) -> None:
    memory = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    if needed > memory:
        raise EvidenceError(
            f"The run has {needed:,} bytes, more than the memory of this machine ({memory:,}): "
            "judge it with `bridgehead pipeline run`."
        )


def _content(folder: Path, file: ManifestFile, size: int | None) -> bytes | None:
    """Return a file's bytes, None if it does not exist; raise EvidenceError if it has changed."""
    if size is None:
        return None
    data = b""

    def digest() -> str:
        nonlocal data
        with open_file(folder, file.path) as opened:
            data = opened.read(file.bytes)
        return hashlib.sha256(data).hexdigest()

    try:
        change = file.change(size, digest)
    except OSError as error:
        raise EvidenceError(f"{file.path} cannot be read: {error.strerror}.") from None
    if change:
        raise EvidenceError(f"{file.path} {change}")
    return data


def _read_events(
    files: Sequence[ManifestFile], contents: Mapping[str, bytes | None], evidence: Evidence
) -> None:
    seen: dict[EventKey, Event] = {}
    last_segments = {_segments_of(path): path for path in sorted(file.path for file in files)}
    stopped: set[str] = set()  # the boots that have a `stopped` event
    run_id = evidence.manifest.run.run_id
    for file in sorted(files, key=lambda listed_file: listed_file.path):
        data = contents[file.path]
        account = FileAccount(file.path, file.lines if data is not None else 0)
        evidence.accounts.append(account)
        target = evidence.clients if file.kind == "client" else evidence.events
        lines = split_lines(data or b"")
        segments = _segments_of(file.path)
        boot = segments.rpartition("/events-")[2]
        may_be_cut = file.cut and last_segments[segments] == file.path
        for number, line in enumerate(lines, start=1):
            if not line.strip():
                account.blank += 1
                continue
            # A kill cuts the last line of the last segment of a boot without `stopped`.
            if number == len(lines) and may_be_cut and boot not in stopped:
                account.cut += 1
                continue
            event = _event(line, number, account, run_id)
            if isinstance(event, str):
                evidence.gaps[witness_of(file.kind)].append(event)
                continue
            key = (event["node"], event["boot"], event["seq"])
            earlier = seen.setdefault(key, event)
            if event["kind"] == "stopped":
                stopped.add(event["boot"])
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


def _segments_of(path: str) -> str:
    """Return the path of a segment without its number; all segments of a boot share it."""
    return path.rpartition("-")[0]


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
