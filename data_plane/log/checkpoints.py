"""Kafka's checkpoint files: a version, the number of entries, then one entry per line."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Final

from data_plane.log.epochs import EpochStart
from data_plane.log.open_files import replace_file

_log = logging.getLogger(__name__)
_VERSION: Final = "0"
HIGH_WATERMARKS: Final = "replication-offset-checkpoint"
RECOVERY_POINTS: Final = "recovery-point-offset-checkpoint"
CLEANED_OFFSETS: Final = "cleaner-offset-checkpoint"
LOG_STARTS: Final = "log-start-offset-checkpoint"
LEADER_EPOCHS: Final = "leader-epoch-checkpoint"
PARTITION_METADATA: Final = "partition.metadata"
LogName = tuple[str, int]  # topic and partition


def write_offsets(path: Path, offsets: Mapping[LogName, int]) -> None:
    """Write an offset for each log."""
    _write(path, (f"{topic} {number} {offset}" for (topic, number), offset in offsets.items()))


def read_offsets(path: Path) -> dict[LogName, int]:
    """Return an offset for each log; a missing file, or one with missing lines, counts as empty."""
    offsets = {}
    for line in _lines(path):
        topic, number, offset = line.split(" ")
        offsets[topic, int(number)] = int(offset)
    return offsets


def write_epochs(path: Path, epochs: Iterable[EpochStart]) -> None:
    """Write the leader epochs of one log."""
    _write(path, (f"{epoch.epoch} {epoch.start_offset}" for epoch in epochs))


def read_epochs(path: Path) -> list[EpochStart]:
    """Return the leader epochs of one log."""
    return [EpochStart(*map(int, line.split(" "))) for line in _lines(path)]


def _write(path: Path, lines: Iterable[str]) -> None:
    entries = list(lines)
    replace_file(path, "\n".join([_VERSION, str(len(entries)), *entries, ""]).encode())


def _lines(path: Path) -> list[str]:
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except FileNotFoundError:
        return []
    if len(lines) < 2 or lines[0] != _VERSION or lines[1] != str(len(lines) - 2):
        _log.warning("%s is damaged and is ignored", path)
        return []
    return lines[2:]
