"""Which runs there are, and whether their files are those that were sealed.

The manifest is the truth about what belongs to a run: a file that grew, shrank or changed is
refused by its name, and so is one that nobody named. A file that is gone is a hole of its witness.
Files are read here only to check them; Spark reads them again for what they say.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from event_log.evidence import (
    EVENT_SOURCES,
    MANIFEST,
    Manifest,
    ManifestError,
    ManifestFile,
    manifest_from_json,
)

_RUN_ID: Final = re.compile(r"[A-Za-z0-9._-]{1,100}")
_PATH: Final = re.compile(r"[A-Za-z0-9.=_-]+(?:/[A-Za-z0-9.=_-]+)*")
_GLOB: Final = re.compile(r"[\[\]{}*?\\]")
_CHUNK_BYTES: Final = 1 << 20
_READ_KINDS: Final = (*EVENT_SOURCES, "commits", "dump")


class EvidenceError(Exception):
    """The evidence cannot be judged. Its text is one sentence."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """One sealed run. `missing` are the files that the manifest names and that are gone."""

    id: str
    folder: Path
    manifest: Manifest
    digest: str  # of the manifest: another one is another run
    missing: tuple[str, ...]

    def files(self, *kinds: str) -> list[ManifestFile]:
        """Return the files of these kinds that are there."""
        return [f for f in self.manifest.files if f.kind in kinds and f.path not in self.missing]


def find_runs(folder: Path) -> list[Run]:
    """Return the sealed runs of a folder: a run's own, one with runs, or a cluster's.

    Raises:
        EvidenceError: there is none, two have one id, or files are not those that were sealed.
    """
    if not folder.is_dir():
        raise EvidenceError(f"{folder} is no folder: name one that `bridgehead up` wrote.")
    found = sorted(_run_folders(folder.resolve()))
    if not found:
        raise EvidenceError(f"{folder} holds no run: name a cluster's folder, or one of its runs.")
    runs: dict[str, Run] = {}
    for each in found:
        run = _open(each)
        if run.id in runs:
            raise EvidenceError(f"{each} and {runs[run.id].folder} are both run {run.id}.")
        runs[run.id] = run
    return list(runs.values())


def _run_folders(folder: Path) -> Iterator[Path]:
    if (folder / MANIFEST).exists() or folder.name.startswith("run="):
        yield folder
        return
    for parent in (folder, folder / "evidence"):
        yield from (path for path in parent.glob("run=*") if path.is_dir())


def _open(folder: Path) -> Run:
    if _GLOB.search(str(folder)):
        raise EvidenceError(f"{folder}: Spark reads []{{}}*?\\ as patterns; move it elsewhere.")
    path = folder / MANIFEST
    try:
        text = path.read_bytes()
    except OSError:
        raise EvidenceError(
            f"{folder} is not sealed: run `bridgehead evidence seal` on it first."
        ) from None
    try:
        manifest = manifest_from_json(json.loads(text))
    except (ManifestError, ValueError) as wrong:
        raise EvidenceError(f"{path}: {wrong}") from None
    if not _RUN_ID.fullmatch(manifest.run.run_id):
        raise EvidenceError(f"{path}: {manifest.run.run_id!r} is no id of a run.")
    missing = _check(folder, manifest)
    digest = hashlib.sha256(text + "\n".join(missing).encode()).hexdigest()[:16]
    return Run(
        id=manifest.run.run_id, folder=folder, manifest=manifest, digest=digest, missing=missing
    )


def _check(folder: Path, manifest: Manifest) -> tuple[str, ...]:
    """Compare the folder with its manifest; return the names of files that are gone."""
    named = {each.path: each for each in manifest.files}
    for name in named:
        if not _PATH.fullmatch(name) or ".." in name.split("/"):
            raise EvidenceError(f"{folder}: {name!r} is no path inside a run.")
    there = {p.relative_to(folder).as_posix() for p in folder.rglob("*") if p.is_file()}
    strangers = sorted(there - set(named) - {MANIFEST})
    if strangers:
        raise EvidenceError(
            f"{folder / strangers[0]} is not in the manifest: seal the run again, or remove it."
        )
    with ThreadPoolExecutor() as pool:
        present = [each for name, each in sorted(named.items()) if name in there]
        for complaint in pool.map(lambda each: _complaint(folder, each), present):
            if complaint:
                raise EvidenceError(complaint)
    return tuple(sorted(set(named) - there))


def _complaint(folder: Path, file: ManifestFile) -> str | None:
    path = folder / file.path
    size = path.stat().st_size
    if size != file.bytes:
        verb = "grown" if size > file.bytes else "shrunk"
        return (
            f"{path} has {verb} from {file.bytes} to {size} bytes since it was sealed: find out "
            "who wrote to it; sealing again would judge what is there now."
        )
    digest = hashlib.sha256()
    with path.open("rb") as opened:
        while chunk := opened.read(_CHUNK_BYTES):
            digest.update(chunk)
    if digest.hexdigest() != file.sha256:
        return f"{path} was changed since it was sealed: its digest is another."
    return None
