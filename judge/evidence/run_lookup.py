"""Finds the run that a folder names, and reads its evidence, sealed or not."""

from __future__ import annotations

import shutil
import tempfile
import time
from dataclasses import replace
from pathlib import Path

from event_log.evidence import MANIFEST, RUN, Manifest
from judge.evidence.reading import Evidence, EvidenceError, read_sealed
from judge.evidence.sealing import load_run, seal


def find_runs(folder: Path) -> list[Path]:
    """Return the runs of a cluster's folder, oldest first; or the folder itself if it is a run.

    Raises:
        EvidenceError: there is none.
    """
    if not folder.is_dir():
        raise EvidenceError(f"{folder} is not a folder: name a cluster's data directory or a run.")
    if (folder / MANIFEST).is_file() or (folder / RUN).is_file():
        return [folder]
    runs = [path.parent for path in folder.glob(f"evidence/run=*/{RUN}")]
    runs = runs or [path.parent for path in folder.glob(f"run=*/{RUN}")]
    if not runs:
        raise EvidenceError(
            f"{folder} has no run: name the data directory of a cluster, or a run=… folder."
        )
    return sorted(runs, key=lambda run: load_run(run).started_ms)


def read_run(folder: Path) -> Evidence:
    """Read the last run of a folder; an unsealed run is read as it is now.

    Raises:
        EvidenceError: there is none, or it cannot be judged.
    """
    run = find_runs(folder)[-1]
    if (run / MANIFEST).is_file():
        return read_sealed(run)
    with tempfile.TemporaryDirectory(prefix="bridgehead-judge-") as temporary:
        copy = Path(temporary) / run.name
        shutil.copytree(run, copy)
        seal_now(copy)
        evidence = read_sealed(copy)
    evidence.unsealed = True
    return evidence


def seal_now(folder: Path, log_folders: list[str] | None = None) -> Manifest:
    """Seal a run; `log_folders` are those of its ZooKeeper members' logs.

    Raises:
        EvidenceError: it cannot be sealed.
    """
    run = load_run(folder)
    if log_folders:
        run = replace(run, log_folders=log_folders)
    try:
        return seal(folder, run, sealed_ms=time.time_ns() // 1_000_000)
    except OSError as error:
        raise EvidenceError(f"{folder} cannot be sealed: {error}.") from None
