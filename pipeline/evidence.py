"""Finds sealed runs and compares their files with the manifests.

A file that has changed since the run was sealed, or that the manifest does not name, is an error
that names it. A file that the manifest names and that does not exist is a gap. Files are read here
only to check them; Spark reads their lines.
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
    MANIFEST,
    Manifest,
    ManifestError,
    ManifestFile,
    manifest_from_json,
)

_RUN_ID: Final = re.compile(r"[A-Za-z0-9._-]{1,100}")
_PATH: Final = re.compile(r"[A-Za-z0-9.=_-]+(?:/[A-Za-z0-9.=_-]+)*")
_GLOB: Final = re.compile(r"[\[\]{}*?\\]")


class EvidenceError(Exception):
    """The evidence cannot be judged. Its text is one sentence."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """One sealed run. `missing` are files that the manifest names and that do not exist."""

    id: str
    folder: Path
    manifest: Manifest
    digest: str  # of the manifest and the missing files
    missing: tuple[str, ...]

    def files(self, *kinds: str) -> list[ManifestFile]:
        """Return the existing files of these kinds."""
        return [f for f in self.manifest.files if f.kind in kinds and f.path not in self.missing]


def find_runs(folder: Path) -> list[Run]:
    """Return the sealed runs of a folder: a run's folder, one with runs, or a cluster's.

    Raises:
        EvidenceError: there is none, two have the same id, or a file has changed.
    """
    if not folder.is_dir():
        raise EvidenceError(f"{folder} is not a folder: name one that `bridgehead up` wrote.")
    found = sorted(_run_folders(folder.resolve()))
    if not found:
        raise EvidenceError(f"{folder} has no run: name a cluster's folder, or one of its runs.")
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
    except (ManifestError, ValueError) as error:
        raise EvidenceError(f"{path}: {error}") from None
    if not _RUN_ID.fullmatch(manifest.run.run_id):
        raise EvidenceError(f"{path}: {manifest.run.run_id!r} is not a valid run id.")
    missing = _check(folder, manifest)
    digest = hashlib.sha256(text + "\n".join(missing).encode()).hexdigest()[:16]
    return Run(
        id=manifest.run.run_id, folder=folder, manifest=manifest, digest=digest, missing=missing
    )


def _check(folder: Path, manifest: Manifest) -> tuple[str, ...]:
    """Compare the folder with its manifest; return the missing files."""
    named = {each.path: each for each in manifest.files}
    for name in named:
        if not _PATH.fullmatch(name) or ".." in name.split("/"):
            raise EvidenceError(f"{folder}: {name!r} is not a path inside a run.")
    existing = {p.relative_to(folder).as_posix() for p in folder.rglob("*") if p.is_file()}
    unnamed = sorted(existing - set(named) - {MANIFEST})
    if unnamed:
        raise EvidenceError(
            f"{folder / unnamed[0]} is not in the manifest: seal the run again, or remove it."
        )
    with ThreadPoolExecutor() as pool:
        present = [each for name, each in sorted(named.items()) if name in existing]
        for change in pool.map(lambda each: _change_of(folder, each), present):
            if change:
                raise EvidenceError(change)
    return tuple(sorted(set(named) - existing))


def _change_of(folder: Path, file: ManifestFile) -> str:
    path = folder / file.path
    with path.open("rb") as opened:
        digest = hashlib.file_digest(opened, "sha256").hexdigest()
    change = file.change(path.stat().st_size, digest)
    return f"{path} {change}" if change else ""
