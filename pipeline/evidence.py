"""Finds runs and compares their files with the manifests.

An unsealed run is copied as it is now, and the copy is sealed. If a file has changed since the run
was sealed, or the manifest does not name it, an error names the file. A file that the manifest
names but that does not exist is a gap. Files are read here only to check them; Spark reads their
lines.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from event_log.evidence import (
    MANIFEST,
    MANIFEST_BYTES_MAX,
    Manifest,
    ManifestError,
    ManifestFile,
    manifest_from_json,
    parse_document,
)
from judge.evidence.run_files import EvidenceError, is_file, run_files, runs_in
from judge.evidence.run_lookup import sealed_copy
from judge.seals import SIGNATURE, SIGNATURE_BYTES_MAX, Seal, SealError, SealRules
from pipeline.places import StoragePlace, local_path, local_place

_RUN_ID: Final = re.compile(r"[A-Za-z0-9._-]{1,100}")
_GLOB: Final = re.compile(r"[\[\]{}*?\\]")
_NO_KEY: Final = SealRules()
SMALL_BYTES_MAX: Final = 32 << 20


class PipelineEvidenceError(Exception):
    """The evidence cannot be judged. The message is one sentence."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """One run. `missing` are files that the manifest names but that do not exist."""

    id: str
    folder: StoragePlace
    manifest: Manifest
    digest: str  # of the manifest and of the names of the missing files
    missing: tuple[str, ...]
    doubt: str = ""  # why the evidence may have been changed; see judge.seals

    def files(self, *kinds: str) -> list[ManifestFile]:
        """Return the existing files of these kinds."""
        return [f for f in self.manifest.files if f.kind in kinds and f.path not in self.missing]


def is_small(runs: Iterable[Run]) -> bool:
    """Return whether Spark takes longer to start than to process the lines of these runs."""
    return sum(file.bytes for run in runs for file in run.manifest.files) < SMALL_BYTES_MAX


def find_runs(
    where: Path | StoragePlace, rules: SealRules = _NO_KEY, *, copies: Path | None = None
) -> list[Run]:
    """Return the runs of a folder, which may be a run, a folder of runs, or a cluster's folder.

    Args:
        where: the folder.
        rules: what the seals must satisfy.
        copies: the folder for copies of unsealed local runs; None: unsealed runs are
            rejected. Unsealed remote runs are always rejected.

    Raises:
        EvidenceError: `where` is not a folder or has no run, two runs have the same id, or a run
            cannot be judged: it is unsealed and not copied, its path has a character of a Spark
            pattern, its manifest or signature is invalid or cannot be read, or one of its files
            has changed or is not in the manifest.
        OSError: the file system failed.
    """
    folder = local_place(where) if isinstance(where, Path) else where
    path = local_path(folder.uri)
    if not folder.is_folder():
        raise PipelineEvidenceError(
            f"{folder} is not a folder: name one that `bridgehead up` wrote."
        )
    try:
        folders = sorted(_run_folders(folder, path), key=str)
    except EvidenceError as error:
        raise PipelineEvidenceError(str(error)) from None
    if not folders:
        raise PipelineEvidenceError(
            f"{folder} has no run: name a cluster's folder, or one of its runs."
        )
    runs: dict[str, Run] = {}
    for run_folder in folders:
        files = _files(run_folder)
        run = (
            _open(run_folder, files, rules)
            if MANIFEST in files
            else _copied(run_folder, rules, copies)
        )
        if run.id in runs:
            raise PipelineEvidenceError(
                f"{run_folder} and {runs[run.id].folder} are both run {run.id}."
            )
        runs[run.id] = run
    return list(runs.values())


def _run_folders(folder: StoragePlace, path: Path | None) -> Iterator[StoragePlace]:
    """Yield the runs of a folder. Raises EvidenceError if a local one is a symbolic link."""
    is_run = is_file(path, MANIFEST) if path is not None else (folder / MANIFEST).is_file()
    if folder.name.startswith("run=") or is_run:
        yield folder
    elif path is not None:
        for parent in (path, path / "evidence"):
            yield from map(local_place, runs_in(parent))
    else:
        for place in (folder, folder / "evidence"):
            yield from (run for run in place.folders() if run.name.startswith("run="))


def _files(folder: StoragePlace) -> Mapping[str, int]:
    """Return the size of each file of a run, by its path below the run's folder."""
    path = local_path(folder.uri)
    try:
        return folder.files() if path is None else run_files(path)
    except EvidenceError as error:
        raise PipelineEvidenceError(f"{folder}: {error}") from None


def _copied(folder: StoragePlace, rules: SealRules, copies: Path | None) -> Run:
    path = local_path(folder.uri)
    if copies is None or path is None:
        raise PipelineEvidenceError(
            f"{folder} is not sealed: run `bridgehead evidence seal` on it first."
        )
    try:
        copy = local_place(sealed_copy(path, copies))
    except (EvidenceError, OSError) as error:
        raise PipelineEvidenceError(
            f"{folder} is not sealed, and cannot be copied: {error}"
        ) from None
    return replace(_open(copy, _files(copy), _NO_KEY), doubt=rules.doubt(Seal.UNSEALED))


def _open(folder: StoragePlace, files: Mapping[str, int], rules: SealRules) -> Run:
    if _GLOB.search(str(folder)):
        raise PipelineEvidenceError(
            f"{folder}: the path has a character of a Spark pattern ([]{{}}*?\\): move the run."
        )
    path = folder / MANIFEST
    for name, bytes_max in ((MANIFEST, MANIFEST_BYTES_MAX), (SIGNATURE, SIGNATURE_BYTES_MAX)):
        if files.get(name, 0) > bytes_max:
            raise PipelineEvidenceError(f"{folder / name} has more than {bytes_max:,} bytes.")
    try:
        text = path.read_bytes()
        signed = (folder / SIGNATURE).read_bytes() if SIGNATURE in files else None
        seal = rules.check(signed, text, folder / SIGNATURE)
        manifest = manifest_from_json(parse_document(text))
    except OSError as error:
        raise PipelineEvidenceError(f"{path} cannot be read: {error.strerror}.") from None
    except SealError as error:
        raise PipelineEvidenceError(str(error)) from None
    except (ManifestError, ValueError) as error:
        raise PipelineEvidenceError(f"{path}: {error}") from None
    if not _RUN_ID.fullmatch(manifest.run.run_id):
        raise PipelineEvidenceError(f"{path}: {manifest.run.run_id!r} is not a valid run id.")
    missing = _check(folder, files, manifest)
    digest = hashlib.sha256(text + "\n".join(missing).encode()).hexdigest()[:16]
    return Run(
        id=manifest.run.run_id,
        folder=folder,
        manifest=manifest,
        digest=digest,
        missing=missing,
        doubt=rules.doubt(seal),
    )


def _check(folder: StoragePlace, files: Mapping[str, int], manifest: Manifest) -> tuple[str, ...]:
    """Compare the files of the folder with its manifest; return the missing ones."""
    named = {listed_file.path: listed_file for listed_file in manifest.files}
    unnamed = sorted(set(files) - set(named) - {MANIFEST, SIGNATURE})
    if unnamed:
        raise PipelineEvidenceError(
            f"{folder / unnamed[0]} is not in the manifest: seal the run again, or remove it."
        )

    def change(file: ManifestFile) -> str:
        path = folder / file.path
        problem = file.change(files[file.path], path.sha256)
        return f"{path} {problem}" if problem else ""

    with ThreadPoolExecutor() as pool:
        present = [listed for name, listed in sorted(named.items()) if name in files]
        for problem in pool.map(change, present):
            if problem:
                raise PipelineEvidenceError(problem)
    return tuple(sorted(set(named) - set(files)))
