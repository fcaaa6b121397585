"""Sealing: what a run has left is gathered into its folder and named in a manifest.

Members' logs are copied without their preallocated tails, decoded, merged and written as commit
lines; every file is counted and digested. Nothing in the folder is changed after that.
"""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Iterable, Sequence
from pathlib import Path

import orjson

from chaos.evidence.commit_lines import OutcomeContentError, commit_line
from chaos.evidence.merge import merge
from chaos.evidence.reading import EvidenceError
from chaos.witness import TornLogError, Transaction, read_transactions
from event_log.evidence import (
    COMMITS,
    DUMPS,
    EVENT_SOURCES,
    FINAL_DUMP,
    FIRST_DUMP,
    KAFKA_LOGS,
    MANIFEST,
    RUN,
    Manifest,
    ManifestError,
    ManifestFile,
    RunDescription,
    ZooKeeperEvidence,
    manifest_to_json,
    run_from_json,
)

LINES_OF = (*EVENT_SOURCES, *KAFKA_LOGS.values(), "commits", "dump")


def load_run(folder: Path) -> RunDescription:
    """Read a run's description. Raises EvidenceError."""
    path = folder / RUN
    try:
        return run_from_json(json.loads(path.read_text(encoding="utf-8")))
    except (OSError, ValueError, ManifestError) as wrong:
        raise EvidenceError(f"{path} does not describe a run: {wrong}") from None


def seal(folder: Path, run: RunDescription, *, sealed_ms: int) -> Manifest:
    """Gather, count and write the manifest; a run that was sealed before is sealed again.

    Raises:
        EvidenceError: ZooKeeper's log cannot be understood, or the folder cannot be written.
    """
    (folder / MANIFEST).unlink(missing_ok=True)
    zookeeper = gather_commits(folder, run)
    return write_manifest(folder, run, zookeeper, sealed_ms=sealed_ms)


def write_manifest(
    folder: Path, run: RunDescription, zookeeper: ZooKeeperEvidence, *, sealed_ms: int
) -> Manifest:
    """Name everything that is in the folder; the manifest appears at once or not at all."""
    manifest = Manifest(
        run=run, sealed_ms=sealed_ms, zookeeper=zookeeper, files=list(survey(folder))
    )
    temporary = folder / f"{MANIFEST}.tmp"
    temporary.write_bytes(orjson.dumps(manifest_to_json(manifest), option=orjson.OPT_INDENT_2))
    temporary.replace(folder / MANIFEST)
    return manifest


def survey(folder: Path) -> Iterable[ManifestFile]:
    """Yield every file of a run's folder as it is now."""
    for path in sorted(folder.rglob("*")):
        name = path.relative_to(folder).as_posix()
        if not path.is_file() or name == MANIFEST or name.endswith(".tmp"):
            continue
        kind = _kind_of(name)
        data = path.read_bytes()
        has_lines = kind in LINES_OF
        cut = has_lines and bool(data) and not data.endswith(b"\n")
        yield ManifestFile(
            path=name,
            kind=kind,
            bytes=len(data),
            sha256=hashlib.sha256(data).hexdigest(),
            lines=data.count(b"\n") + cut if has_lines else 0,
            cut=cut,
        )


def _kind_of(name: str) -> str:
    if name in (RUN, DUMPS):
        return "run"
    if name == COMMITS:
        return "commits"
    if name in (FIRST_DUMP, FINAL_DUMP):
        return "dump"
    source, _, _ = name.partition("=")
    if source in EVENT_SOURCES and name.endswith(".jsonl"):
        return source
    if source == "kafka":
        for log, kind in KAFKA_LOGS.items():
            if name.rpartition("/")[2].startswith(log):  # and the older ones, .1 or by the hour
                return kind
    if name.startswith("zookeeper/member="):
        return "log"
    raise EvidenceError(f"{name} is no part of a run: take it out of the folder.")


def gather_commits(folder: Path, run: RunDescription) -> ZooKeeperEvidence:
    """Copy the members' logs into the folder and write what they say as commit lines.

    Logs that stand in the folder already are not fetched again: what is sealed can be sealed again
    when the cluster is long gone.
    """
    members = _member_folders(folder, run)
    if members is None:
        return ZooKeeperEvidence(logs=False)
    dumped = load_dumps(folder)
    first_zxid, final_zxid = dumped.get(FIRST_DUMP), dumped.get(FINAL_DUMP)
    holes: list[str] = []
    if first_zxid is None:
        holes.append(f"{FIRST_DUMP} is missing: what stood in ZooKeeper before is not known")
    logs = [_read_member(member, holes) for member in members]
    merged = merge(logs, first_zxid=first_zxid or 0, final_zxids=_final_zxids(folder, run.chroot))
    try:
        lines = [orjson.dumps(commit_line(each, run.chroot)) for each in merged.transactions]
    except OutcomeContentError as wrong:
        raise EvidenceError(f"{wrong}.") from None
    path = folder / COMMITS
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(b"".join(line + b"\n" for line in lines))
    return ZooKeeperEvidence(
        logs=True,
        members=len(members),
        first_zxid=first_zxid or 0,
        last_zxid=merged.transactions[-1].zxid if merged.transactions else first_zxid or 0,
        final_zxid=final_zxid,
        denied=merged.denied,
        holes=[*holes, *merged.holes],
    )


def _member_folders(folder: Path, run: RunDescription) -> list[Path] | None:
    """Return the folder of each member's copied logs; None: they are out of reach."""
    count = len(run.log_folders or ())
    targets = [folder / "zookeeper" / f"member={number + 1}" for number in range(count)]
    for source, target in zip(run.log_folders or (), targets, strict=True):
        logs = sorted(Path(source).glob("version-2/log.*")) or sorted(Path(source).glob("log.*"))
        if logs:
            shutil.rmtree(target, ignore_errors=True)
            target.mkdir(parents=True, mode=0o700)  # The log holds salted passwords.
        for log in logs:
            (target / log.name).write_bytes(without_tail(log.read_bytes()))
    return targets if any(target.is_dir() for target in targets) else None


def without_tail(data: bytes) -> bytes:
    """Return a log without the zeros that its server had preallocated, but one entry of them.

    Records end with a byte that is not zero, so nothing that was written is cut.
    """
    return data.rstrip(b"\0") + bytes(16) if data.endswith(bytes(16)) else data


def _read_member(member: Path, holes: list[str]) -> Sequence[Transaction]:
    if not member.is_dir():
        holes.append(f"zookeeper/{member.name} is missing")
        return ()
    try:
        return read_transactions(member)
    except TornLogError as torn:
        holes.append(f"zookeeper/{member.name}: {torn}")
        return ()


def load_dumps(folder: Path) -> dict[str, int]:
    """Return as of which transaction each dump of the folder is. Raises EvidenceError."""
    path = folder / DUMPS
    if not path.is_file():
        return {}
    try:
        return {str(name): int(zxid) for name, zxid in json.loads(path.read_bytes()).items()}
    except (AttributeError, TypeError, ValueError) as wrong:
        raise EvidenceError(f"{DUMPS} cannot be read: {wrong}.") from None


def _final_zxids(folder: Path, chroot: str) -> dict[str, tuple[int, int]] | None:
    path = folder / FINAL_DUMP
    if not path.is_file():
        return None
    found = {}
    for line in path.read_bytes().splitlines():
        znode = json.loads(line)
        found[chroot + znode["path"]] = (znode["czxid"], znode["mzxid"])
    return found
