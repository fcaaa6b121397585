"""A run's folder as a value: every file checked against the manifest, every line accounted for.

A sealed run is read as its manifest says; a file that has changed since, or that the manifest does
not name, refuses the run by name. What the manifest names and is not there is a hole.
"""

from __future__ import annotations

import hashlib
import json
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from chaos.evidence.lines import (
    FileAccount,
    WrongRunError,
    has_unknown_fields,
    judge_event,
    parse_object,
)
from chaos.evidence.shapes import COMMIT_SHAPE, DUMP_SHAPE, faults_of
from event_log.commits import CommitLine, CommitOperation, CommitOutcome, DumpLine
from event_log.evidence import (
    COMMITS,
    FINAL_DUMP,
    FIRST_DUMP,
    MANIFEST,
    Manifest,
    ManifestError,
    ManifestFile,
    RunDescription,
    manifest_from_json,
)

Event = Mapping[str, Any]
WITNESS_OF: Mapping[str, str] = {"node": "events", "harness": "events", "client": "clients"}


class EvidenceError(Exception):
    """The folder cannot be judged. Its text is one sentence."""


@dataclass(slots=True)
class Evidence:
    """Everything that was read. `holes` are sentences by witness; `out_of_reach` by witness too."""

    run: RunDescription
    events: list[Event] = field(default_factory=list)  # of nodes and of the harness
    clients: list[Event] = field(default_factory=list)
    commits: list[CommitLine] = field(default_factory=list)
    first: dict[str, DumpLine] = field(default_factory=dict)
    final: dict[str, DumpLine] | None = None
    first_zxid: int = 0
    final_zxid: int | None = None
    holes: dict[str, list[str]] = field(default_factory=lambda: defaultdict(list))
    out_of_reach: dict[str, str] = field(default_factory=dict)
    accounts: list[FileAccount] = field(default_factory=list)
    unsealed: bool = False  # read as it was at that moment; it may go on
    two_writers: list[tuple[str, str, int]] = field(default_factory=list)  # node, boot, seq


def load_manifest(folder: Path) -> Manifest:
    """Read a sealed run's manifest. Raises EvidenceError."""
    try:
        document = json.loads((folder / MANIFEST).read_text(encoding="utf-8"))
        return manifest_from_json(document)
    except (OSError, ValueError, ManifestError) as wrong:
        raise EvidenceError(f"{folder / MANIFEST}: {wrong}") from None


def read_sealed(folder: Path) -> Evidence:
    """Read a sealed run.

    Raises:
        EvidenceError: the manifest is none, a file has changed, or a line is another run's.
    """
    manifest = load_manifest(folder)
    _refuse_strangers(folder, manifest)
    return read_files(folder, manifest)


def _refuse_strangers(folder: Path, manifest: Manifest) -> None:
    named = {each.path for each in manifest.files} | {MANIFEST}
    for path in sorted(folder.rglob("*")):
        name = path.relative_to(folder).as_posix()
        if path.is_file() and name not in named:
            raise EvidenceError(f"{name} is not in the manifest: remove it, or seal the run again.")


def read_files(folder: Path, manifest: Manifest) -> Evidence:
    """Read what a manifest names. Raises EvidenceError."""
    evidence = Evidence(manifest.run)
    evidence.first_zxid = manifest.zookeeper.first_zxid
    evidence.final_zxid = manifest.zookeeper.final_zxid
    contents = {each.path: _content(folder, each, evidence) for each in manifest.files}
    event_files = [each for each in manifest.files if each.kind in WITNESS_OF]
    _read_events(event_files, contents, evidence)
    if not any(each.kind == "node" for each in event_files):
        evidence.out_of_reach["events"] = "no node's events are in the folder"
    _read_zookeeper(manifest, contents, evidence)
    return evidence


def _content(folder: Path, file: ManifestFile, evidence: Evidence) -> bytes | None:
    """Return a file's bytes, which must be those that were sealed; None: it is gone."""
    try:
        data = (folder / file.path).read_bytes()
    except FileNotFoundError:
        witness = WITNESS_OF.get(file.kind, "commits")
        evidence.holes[witness].append(f"{file.path} is missing")
        return None
    except OSError as wrong:
        raise EvidenceError(f"{file.path} cannot be read: {wrong.strerror}.") from None
    if len(data) != file.bytes:
        verb = "grown" if len(data) > file.bytes else "shrunk"
        raise EvidenceError(
            f"{file.path} has {verb} from {file.bytes} to {len(data)} bytes since it was sealed: "
            "find out who wrote to it; sealing again would judge what is there now."
        )
    if hashlib.sha256(data).hexdigest() != file.sha256:
        raise EvidenceError(f"{file.path} was changed since it was sealed: its digest is another.")
    return data


def _read_events(
    files: Sequence[ManifestFile], contents: Mapping[str, bytes | None], evidence: Evidence
) -> None:
    seen: dict[tuple[str, str, int], Event] = {}
    run_id = evidence.run.run_id
    for file in sorted(files, key=lambda each: each.path):
        data = contents[file.path]
        account = FileAccount(file.path, file.lines)
        evidence.accounts.append(account)
        if data is None:
            account.lines = 0  # Nothing of it can be accounted for; the hole says so.
            continue
        witness = WITNESS_OF[file.kind]
        target = evidence.clients if witness == "clients" else evidence.events
        lines = split_lines(data)
        for number, line in enumerate(lines, start=1):
            if not line.strip():
                account.blank += 1
                continue
            if number == len(lines) and file.cut and _is_left_open(file, files, seen):
                account.cut += 1
                continue
            event = _event(line, number, account, run_id)
            if isinstance(event, str):
                evidence.holes[witness].append(event)
                continue
            key = (event["node"], event["boot"], event["seq"])
            known = seen.setdefault(key, event)
            if known is event:
                account.accepted += 1
                target.append(event)
            elif known == event:
                account.duplicates += 1
            else:
                account.accepted += 1
                evidence.two_writers.append(key)
    _find_gaps(seen, evidence)


def split_lines(data: bytes) -> list[bytes]:
    """Return the lines of a file; a last line without newline is one, nothing after one is none."""
    lines = data.split(b"\n")
    if not lines[-1]:
        lines.pop()
    return lines


def _is_left_open(
    file: ManifestFile,
    files: Sequence[ManifestFile],
    seen: Mapping[tuple[str, str, int], Event],
) -> bool:
    """True for the last segment of a boot that has not said that it stopped."""
    boot, _, _ = file.path.rpartition("-")
    is_last = all(other.path <= file.path for other in files if other.path.startswith(f"{boot}-"))
    name = boot.rpartition("/events-")[2]
    stopped = any(e["kind"] == "stopped" for key, e in seen.items() if key[1] == name)
    return is_last and not stopped


def _event(line: bytes, number: int, account: FileAccount, run_id: str) -> Event | str:
    """Return the event of a line, or a sentence about why it is quarantined."""
    value = parse_object(line)
    try:
        reasons = (value,) if isinstance(value, str) else judge_event(value, run_id)
    except WrongRunError as wrong:
        raise EvidenceError(
            f"{account.path}:{number} is of run {wrong}, this is {run_id}: take the file away."
        ) from None
    if reasons:
        account.quarantined.append((number, reasons))
        return f"{account.path}:{number} is quarantined: {', '.join(reasons)}"
    assert isinstance(value, dict)
    account.unknown_fields += has_unknown_fields(value)
    return value


def _find_gaps(seen: Mapping[tuple[str, str, int], Event], evidence: Evidence) -> None:
    """Name what is missing of each boot: numbers between its events, and its end."""
    boots: dict[tuple[str, str], list[int]] = defaultdict(list)
    ended = set()
    for (node, boot, seq), event in seen.items():
        boots[node, boot].append(seq)
        if event["kind"] == "stopped":
            ended.add((node, boot))
        elif event["kind"] == "node_ended":
            ended.add((event["ended_node"], event["ended_boot"]))
    for (node, boot), numbers in sorted(boots.items()):
        witness = "clients" if node.startswith("client-") else "events"
        holes = evidence.holes[witness]
        expected = 0
        for seq in sorted(numbers):
            if seq > expected:
                holes.append(f"node {node} boot {boot}: {expected} to {seq - 1} missing")
            expected = seq + 1
        if (node, boot) not in ended:
            holes.append(f"node {node} boot {boot}: how it ended is not recorded")


def _read_zookeeper(
    manifest: Manifest, contents: Mapping[str, bytes | None], evidence: Evidence
) -> None:
    if not manifest.zookeeper.logs:
        evidence.out_of_reach["commits"] = "ZooKeeper's transaction logs are out of reach"
        return
    holes = evidence.holes["commits"]
    holes += manifest.zookeeper.holes
    names = {each.path: each for each in manifest.files}
    for name in (COMMITS, FIRST_DUMP):
        if name not in names:
            holes.append(f"{name} is missing")
    for name, file in names.items():
        data = contents[name]
        if file.kind == "commits" and data is not None:
            evidence.commits += map(commit_from_json, _objects(data, file, evidence))
        elif file.kind == "dump" and data is not None:
            lines = [_known(DumpLine, each) for each in _objects(data, file, evidence)]
            dump = {line.path: line for line in lines}
            if name == FINAL_DUMP:
                evidence.final = dump
            else:
                evidence.first = dump


def _objects(data: bytes, file: ManifestFile, evidence: Evidence) -> list[dict[str, Any]]:
    account = FileAccount(file.path, file.lines)
    evidence.accounts.append(account)
    found = []
    for number, line in enumerate(split_lines(data), start=1):
        if not line.strip():
            account.blank += 1
            continue
        value = parse_object(line)
        reasons: tuple[str, ...] = (value,) if isinstance(value, str) else ()
        if isinstance(value, dict):
            shape = COMMIT_SHAPE if file.kind == "commits" else DUMP_SHAPE
            reasons = faults_of(value, shape)
        if reasons:
            account.quarantined.append((number, reasons))
            evidence.holes["commits"].append(
                f"{file.path}:{number} is quarantined: {', '.join(reasons)}"
            )
            continue
        assert isinstance(value, dict)
        account.accepted += 1
        found.append(value)
    return found


def commit_from_json(value: Mapping[str, Any]) -> CommitLine:
    """Build a commit out of its checked line."""
    return CommitLine(
        zxid=value["zxid"],
        session=value["session"],
        time_ms=value["time_ms"],
        kind=value["kind"],
        failed=value["failed"],
        operations=[_known(CommitOperation, each) for each in value["operations"]],
        outcomes=[_known(CommitOutcome, each) for each in value["outcomes"]],
    )


def _known(kind: Any, value: Mapping[str, Any]) -> Any:
    return kind(**{name: value[name] for name in kind.__dataclass_fields__})
