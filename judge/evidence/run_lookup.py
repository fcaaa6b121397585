"""Finds the runs in a folder, and reads the evidence of the last one, sealed or not."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Final

from event_log.evidence import MANIFEST, RUN, Manifest, RunDescription
from judge.evidence.reading import Evidence, read_sealed
from judge.evidence.run_files import EvidenceError, copy_files, is_file, runs_in
from judge.evidence.sealing import LogFolder, load_run, seal
from judge.seals import Seal, SealRules

_NO_KEY: Final = SealRules()


def find_runs(folder: Path) -> list[Path]:
    """Return the runs of a cluster's folder, oldest first; or the folder itself if it is a run.

    Raises:
        EvidenceError: the folder has no run.
    """
    if not folder.is_dir():
        raise EvidenceError(f"{folder} is not a folder: name a cluster's data directory or a run.")
    if is_file(folder, MANIFEST) or is_file(folder, RUN):
        return [folder]
    runs: list[Path] = []
    for parent in (folder / "evidence", folder):
        runs = runs or [run for run in runs_in(parent) if is_file(run, RUN)]
    if not runs:
        raise EvidenceError(
            f"{folder} has no run: name the data directory of a cluster, or a run=… folder."
        )
    return sorted(runs, key=lambda run: load_run(run).started_ms)


def read_run(folder: Path, rules: SealRules = _NO_KEY) -> Evidence:
    """Read the last run of a folder; an unsealed run is read as it is now.

    Raises:
        EvidenceError: the folder has no run, or the run cannot be judged.
    """
    run = find_runs(folder)[-1]
    if is_file(run, MANIFEST):
        return read_sealed(run, rules)
    with tempfile.TemporaryDirectory(prefix="bridgehead-judge-") as temporary:
        evidence = read_sealed(sealed_copy(run, Path(temporary)))
    evidence.seal = Seal.UNSEALED
    evidence.doubt = rules.doubt(evidence.seal)
    return evidence


def sealed_copy(run: Path, folder: Path) -> Path:
    """Copy an unsealed run into `folder` as it is now, and seal the copy.

    Raises:
        EvidenceError: the run cannot be sealed.
    """
    copy = folder / run.resolve().name
    copy_files(run, copy)
    description = load_run(copy)
    _seal(copy, description, own_log_folders(run, description), None)
    return copy


def seal_now(
    folder: Path, log_folders: list[str] | None = None, key: bytes | None = None
) -> Manifest:
    """Seal a run.

    Args:
        folder: the run.
        log_folders: the folders of ZooKeeper's transaction logs, one per member.
        key: signs the manifest.

    Raises:
        EvidenceError: the run cannot be sealed.
    """
    run = load_run(folder)
    logs = own_log_folders(folder, run)
    if log_folders:
        run, logs = replace(run, log_folders=log_folders), [Path(name) for name in log_folders]
    return _seal(folder, run, logs, key)


def _seal(
    folder: Path, run: RunDescription, logs: Sequence[LogFolder], key: bytes | None
) -> Manifest:
    try:
        return seal(folder, run, logs, sealed_ms=time.time_ns() // 1_000_000, key=key)
    except OSError as error:
        raise EvidenceError(f"{folder} cannot be sealed: {error}.") from None


def own_log_folders(folder: Path, run: RunDescription) -> list[LogFolder]:
    """Return the folders of the members' logs that run.json names.

    Only the logs of the run's own cluster are used, because a stranger may have written run.json.
    A person can name other folders with `--zookeeper-logs`.
    """
    resolved = folder.resolve()
    zookeeper = resolved.parent.parent / "zookeeper"
    is_of_cluster = resolved.parent.name == "evidence"
    logs: list[LogFolder] = []
    for member in map(Path, run.log_folders or ()):
        places = (member.resolve(), (member / "version-2").resolve())
        is_inside = is_of_cluster and all(place.is_relative_to(zookeeper) for place in places)
        logs.append(member if is_inside else None)
    return logs
