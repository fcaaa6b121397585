"""Seals a run: writes the decoded transaction logs and a manifest of all files.

The transaction logs of ZooKeeper's members are copied without their preallocated tails, decoded,
merged and written as commit lines. The manifest has the size and the digest of every file, so later
changes are detected. With a key, the manifest is signed.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from functools import partial
from pathlib import Path
from typing import Final

import orjson

from event_log.evidence import (
    COMMITS,
    DESCRIPTION_BYTES_MAX,
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
    parse_document,
    run_from_json,
)
from judge.evidence.commit_lines import commit_line
from judge.evidence.lines import parse_object
from judge.evidence.merge import COUNTER, merge
from judge.evidence.run_files import (
    EvidenceError,
    open_file,
    read_file,
    remove,
    run_files,
    write_file,
)
from judge.evidence.shapes import DUMP_SHAPE, faults_of
from judge.seals import SIGNATURE, signature
from judge.transaction_log import (
    LOG_BYTES_MAX,
    TornLogError,
    Transaction,
    log_files,
    read_transactions,
)

_CHUNK_BYTES: Final = 1 << 20
DUMP_BYTES_MAX: Final = 1 << 30  # 300,000 znodes need some 100 MB
LogFolder = Path | None  # of one member of ZooKeeper; None: not accessible
LINES_OF = (*EVENT_SOURCES, *KAFKA_LOGS.values(), "commits", "dump")


def load_run(folder: Path) -> RunDescription:
    """Read a run's description. Raises EvidenceError."""
    try:
        data = read_file(folder, RUN, DESCRIPTION_BYTES_MAX)
        return run_from_json(parse_document(data))
    except (OSError, ValueError, ManifestError) as error:
        raise EvidenceError(f"{folder / RUN} does not describe a run: {error}") from None


def seal(
    folder: Path,
    run: RunDescription,
    logs: Sequence[LogFolder],
    *,
    sealed_ms: int,
    key: bytes | None = None,
) -> Manifest:
    """Write commit lines, the manifest and its signature; a sealed run is sealed again.

    `logs` has the folder of each member's transaction logs.

    Raises:
        EvidenceError: the folder has a file that does not belong to a run.
    """
    run_files(folder)  # Nothing is removed or written if the folder has a link.
    for name in (MANIFEST, SIGNATURE):
        remove(folder, name)
    zookeeper = gather_commits(folder, run, logs)
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
    data = orjson.dumps(manifest_to_json(manifest), option=orjson.OPT_INDENT_2)
    if key is not None:
        write_file(folder, SIGNATURE, signature(key, data) + b"\n")
    write_file(folder, MANIFEST, data)
    return manifest


def survey(folder: Path) -> Iterable[ManifestFile]:
    """Yield a description of every file of a run's folder."""
    for name in run_files(folder):
        if name in (MANIFEST, SIGNATURE) or name.endswith(".tmp"):
            continue
        kind = _kind_of(name)
        digest, size, newlines, chunk = hashlib.sha256(), 0, 0, b"\n"
        with open_file(folder, name) as file:
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


def gather_commits(
    folder: Path, run: RunDescription, logs: Sequence[LogFolder]
) -> ZooKeeperEvidence:
    """Copy the members' logs into the folder and write them as commit lines.

    If the originals are gone, copies from an earlier seal are used.
    """
    gaps: list[str] = []
    members = _member_folders(folder, logs, gaps)
    if members is None:
        return ZooKeeperEvidence(logs=False)
    dumped = load_dumps(folder)
    first_zxid, final_zxid = dumped.get(FIRST_DUMP), dumped.get(FINAL_DUMP)
    if first_zxid is None:
        gaps.append(f"{FIRST_DUMP} is missing: the state of ZooKeeper before the run is not known")
    transactions = [_read_member(member, gaps) for member in members]
    merged = merge(
        transactions, first_zxid=first_zxid or 0, final_zxids=_final_zxids(folder, run.chroot)
    )
    last_zxid = merged.transactions[-1].zxid if merged.transactions else first_zxid or 0
    # A zxid whose counter is 0 begins an epoch; no transaction has it.
    if final_zxid is not None and last_zxid < final_zxid and final_zxid & COUNTER:
        gaps.append(
            f"ZooKeeper's log ends at zxid {last_zxid}, but the final dump is of zxid {final_zxid}"
        )
    lines = [
        orjson.dumps(commit_line(transaction, run.chroot)) for transaction in merged.transactions
    ]
    write_file(folder, COMMITS, b"".join(line + b"\n" for line in lines))
    return ZooKeeperEvidence(
        logs=True,
        members=len(members),
        first_zxid=first_zxid or 0,
        last_zxid=last_zxid,
        final_zxid=final_zxid,
        denied=merged.denied,
        gaps=[*gaps, *merged.gaps],
    )


def _member_folders(folder: Path, logs: Sequence[LogFolder], gaps: list[str]) -> list[Path] | None:
    """Copy each member's logs; return the folders of the copies, or None if there is no copy."""
    names = [f"zookeeper/member={number}" for number in range(1, len(logs) + 1)]
    for log_folder, name in zip(logs, names, strict=True):
        try:
            files = [] if log_folder is None else log_files(log_folder)
        except TornLogError as torn:
            gaps.append(f"{name}: {torn}")
            continue
        if files:
            remove(folder, name)
        for file in files:
            data = read_file(file.parent, file.name, LOG_BYTES_MAX)
            write_file(folder, f"{name}/{file.name}", without_tail(data))
    members = [folder / name for name in names]
    return members if any(member.is_dir() for member in members) else None


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
    try:
        zxids = parse_document(read_file(folder, DUMPS, DESCRIPTION_BYTES_MAX))
    except FileNotFoundError:
        return {}
    except (OSError, ValueError) as error:
        raise EvidenceError(f"{DUMPS} cannot be read: {error}.") from None
    if not isinstance(zxids, dict) or any(type(zxid) is not int for zxid in zxids.values()):
        raise EvidenceError(f"{DUMPS} cannot be read: it does not map a dump to its zxid.")
    return zxids


def _final_zxids(folder: Path, chroot: str) -> dict[str, tuple[int, int]] | None:
    try:
        data = read_file(folder, FINAL_DUMP, DUMP_BYTES_MAX)
    except FileNotFoundError:
        return None
    zxids = {}
    for line in data.splitlines():
        znode = parse_object(line)
        if isinstance(znode, dict) and not faults_of(znode, DUMP_SHAPE):  # else: a gap, later
            zxids[chroot + znode["path"]] = (znode["czxid"], znode["mzxid"])
    return zxids
