"""Seals a run: writes the decoded transaction logs and a manifest of all files.

The transaction logs of ZooKeeper's members are copied without their preallocated tails, decoded,
merged and written as commit lines. The manifest has the size and the digest of every file, so later
changes are detected. With a key, the manifest is signed.
"""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Iterable, Sequence
from functools import partial
from pathlib import Path

import orjson

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
from judge.evidence.commit_lines import commit_line
from judge.evidence.merge import COUNTER, merge
from judge.evidence.reading import EvidenceError
from judge.seals import SIGNATURE, signature
from judge.transaction_log import TornLogError, Transaction, read_transactions

_CHUNK_BYTES = 1 << 20
LINES_OF = (*EVENT_SOURCES, *KAFKA_LOGS.values(), "commits", "dump")


def load_run(folder: Path) -> RunDescription:
    """Read a run's description. Raises EvidenceError."""
    path = folder / RUN
    try:
        return run_from_json(json.loads(path.read_text(encoding="utf-8")))
    except (OSError, ValueError, ManifestError) as error:
        raise EvidenceError(f"{path} does not describe a run: {error}") from None


def seal(
    folder: Path, run: RunDescription, *, sealed_ms: int, key: bytes | None = None
) -> Manifest:
    """Write commit lines, the manifest and its signature; a sealed run is sealed again.

    Raises:
        EvidenceError: the folder has a file that does not belong to a run.
    """
    for name in (MANIFEST, SIGNATURE):
        (folder / name).unlink(missing_ok=True)
    zookeeper = gather_commits(folder, run)
    return write_manifest(folder, run, zookeeper, sealed_ms=sealed_ms, key=key)


def write_manifest(
    folder: Path,
    run: RunDescription,
    zookeeper: ZooKeeperEvidence,
    *,
    sealed_ms: int,
    key: bytes | None = None,
) -> Manifest:
    """Write the signature; then write the manifest of all files in the folder, atomically."""
    manifest = Manifest(
        run=run, sealed_ms=sealed_ms, zookeeper=zookeeper, files=list(survey(folder))
    )
    temporary = folder / f"{MANIFEST}.tmp"
    data = orjson.dumps(manifest_to_json(manifest), option=orjson.OPT_INDENT_2)
    if key is not None:
        (folder / SIGNATURE).write_bytes(signature(key, data) + b"\n")
    temporary.write_bytes(data)
    temporary.replace(folder / MANIFEST)
    return manifest


def survey(folder: Path) -> Iterable[ManifestFile]:
    """Yield a description of every file of a run's folder."""
    for path in sorted(folder.rglob("*")):
        name = path.relative_to(folder).as_posix()
        if not path.is_file() or name in (MANIFEST, SIGNATURE) or name.endswith(".tmp"):
            continue
        kind = _kind_of(name)
        digest, size, newlines, chunk = hashlib.sha256(), 0, 0, b"\n"
        with path.open("rb") as file:
            for chunk in iter(partial(file.read, _CHUNK_BYTES), b""):
                digest.update(chunk)
                size += len(chunk)
                newlines += chunk.count(b"\n")
        has_lines = kind in LINES_OF
        cut = has_lines and not chunk.endswith(b"\n")
        yield ManifestFile(
            path=name,
            kind=kind,
            bytes=size,
            sha256=digest.hexdigest(),
            lines=newlines + cut if has_lines else 0,
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
            if name.rpartition("/")[2].startswith(log):  # Rotated logs have a suffix.
                return kind
    if name.startswith("zookeeper/member="):
        return "log"
    raise EvidenceError(f"{name} does not belong to a run: remove it from the folder.")


def gather_commits(folder: Path, run: RunDescription) -> ZooKeeperEvidence:
    """Copy the members' logs into the folder and write them as commit lines.

    If the originals are gone, copies from an earlier seal are used.
    """
    members = _member_folders(folder, run)
    if members is None:
        return ZooKeeperEvidence(logs=False)
    dumped = load_dumps(folder)
    first_zxid, final_zxid = dumped.get(FIRST_DUMP), dumped.get(FINAL_DUMP)
    gaps: list[str] = []
    if first_zxid is None:
        gaps.append(f"{FIRST_DUMP} is missing: the state of ZooKeeper before the run is not known")
    logs = [_read_member(member, gaps) for member in members]
    merged = merge(logs, first_zxid=first_zxid or 0, final_zxids=_final_zxids(folder, run.chroot))
    last_zxid = merged.transactions[-1].zxid if merged.transactions else first_zxid or 0
    # A zxid whose counter is 0 begins an epoch; no transaction has it.
    if final_zxid is not None and last_zxid < final_zxid and final_zxid & COUNTER:
        gaps.append(
            f"ZooKeeper's log ends at zxid {last_zxid}, but the final dump is of zxid {final_zxid}"
        )
    lines = [
        orjson.dumps(commit_line(transaction, run.chroot)) for transaction in merged.transactions
    ]
    path = folder / COMMITS
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(b"".join(line + b"\n" for line in lines))
    return ZooKeeperEvidence(
        logs=True,
        members=len(members),
        first_zxid=first_zxid or 0,
        last_zxid=last_zxid,
        final_zxid=final_zxid,
        denied=merged.denied,
        gaps=[*gaps, *merged.gaps],
    )


def _member_folders(folder: Path, run: RunDescription) -> list[Path] | None:
    """Copy each member's logs; return the folders of the copies, or None if there is no copy."""
    count = len(run.log_folders or ())
    targets = [folder / "zookeeper" / f"member={number + 1}" for number in range(count)]
    for source, target in zip(run.log_folders or (), targets, strict=True):
        logs = sorted(Path(source).glob("version-2/log.*")) or sorted(Path(source).glob("log.*"))
        if logs:
            shutil.rmtree(target, ignore_errors=True)
            target.mkdir(parents=True, mode=0o700)  # The log contains salted passwords.
        for log in logs:
            (target / log.name).write_bytes(without_tail(log.read_bytes()))
    return targets if any(target.is_dir() for target in targets) else None


def without_tail(data: bytes) -> bytes:
    """Return a log with only the first 16 of its preallocated zeros.

    Records end with a byte that is not zero, so no record is cut.
    """
    return data.rstrip(b"\0") + bytes(16) if data.endswith(bytes(16)) else data


def _read_member(member: Path, gaps: list[str]) -> Sequence[Transaction]:
    if not member.is_dir():
        gaps.append(f"zookeeper/{member.name} is missing")
        return ()
    try:
        return read_transactions(member)
    except TornLogError as torn:
        gaps.append(f"zookeeper/{member.name}: {torn}")
        return ()


def load_dumps(folder: Path) -> dict[str, int]:
    """Return the zxid of each dump in the folder. Raises EvidenceError."""
    path = folder / DUMPS
    if not path.is_file():
        return {}
    try:
        return {str(name): int(zxid) for name, zxid in json.loads(path.read_bytes()).items()}
    except (AttributeError, TypeError, ValueError) as error:
        raise EvidenceError(f"{DUMPS} cannot be read: {error}.") from None


def _final_zxids(folder: Path, chroot: str) -> dict[str, tuple[int, int]] | None:
    path = folder / FINAL_DUMP
    if not path.is_file():
        return None
    zxids = {}
    for line in path.read_bytes().splitlines():
        znode = json.loads(line)
        zxids[chroot + znode["path"]] = (znode["czxid"], znode["mzxid"])
    return zxids
