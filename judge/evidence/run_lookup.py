"""Finds the runs in a folder, and reads the evidence of the last one, sealed or not."""

from __future__ import annotations

import shutil
import tempfile
import time
from dataclasses import replace
from pathlib import Path
from typing import Final

from event_log.evidence import MANIFEST, RUN, Manifest
from judge.evidence.reading import Evidence, EvidenceError, read_sealed
from judge.evidence.sealing import load_run, seal
from judge.seals import Seal, SealRules

_NO_KEY: Final = SealRules()


def find_runs(folder: Path) -> list[Path]:
    """Return the runs of a cluster's folder, oldest first; or the folder itself if it is a run.

    Raises:
        EvidenceError: the folder has no run.
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


def read_run(folder: Path, rules: SealRules = _NO_KEY) -> Evidence:
    """Read the last run of a folder; an unsealed run is read as it is now.

    Raises:
        EvidenceError: the folder has no run, or the run cannot be judged.
    """
    run = find_runs(folder)[-1]
    if (run / MANIFEST).is_file():
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
    copy = folder / run.name
    shutil.copytree(run, copy)
    seal_now(copy)
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
    if log_folders:
        run = replace(run, log_folders=log_folders)
    try:
        return seal(folder, run, sealed_ms=time.time_ns() // 1_000_000, key=key)
    except OSError as error:
        raise EvidenceError(f"{folder} cannot be sealed: {error}.") from None
