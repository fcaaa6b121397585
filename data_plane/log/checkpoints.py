"""Kafka's checkpoint files: a version, the number of entries, then one entry per line.

A damaged file does not prevent a start. What it lacks is found in the log itself, or is safe to
lack: without an offset, more of the log is read, or an earlier offset is assumed.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Iterable, Mapping
from itertools import pairwise
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
OFFSET_MAX: Final = 2**63 - 1
INT_MAX: Final = 2**31 - 1  # of partitions and epochs
_OFFSET_LINE: Final = re.compile(r"([a-zA-Z0-9._-]+) ([0-9]{1,10}) ([0-9]{1,19})")
_EPOCH_LINE: Final = re.compile(r"([0-9]{1,10}) ([0-9]{1,19})")


def write_offsets(path: Path, offsets: Mapping[LogName, int]) -> None:
    """Write an offset for each log."""
    _write(path, (f"{topic} {number} {offset}" for (topic, number), offset in offsets.items()))


def read_offsets(path: Path) -> dict[LogName, int]:
    """Return an offset for each log. A missing file counts as empty; malformed lines are ignored.

    A file counts as empty if its number of lines is wrong.
    """
    offsets = {}
    for number, line in enumerate(_lines(path) or (), start=3):
        match = _OFFSET_LINE.fullmatch(line)
        partition, offset = (int(match[2]), int(match[3])) if match else (0, OFFSET_MAX + 1)
        if match is None or partition > INT_MAX or offset > OFFSET_MAX:
            _log.warning("%s: line %d is malformed and is ignored", path, number)
            continue
        offsets[match[1], partition] = offset
    return offsets


def write_epochs(path: Path, epochs: Iterable[EpochStart]) -> None:
    """Write the leader epochs of one log."""
    _write(path, (f"{epoch.epoch} {epoch.start_offset}" for epoch in epochs))


def read_epochs(path: Path) -> list[EpochStart] | None:
    """Return the leader epochs of one log; [] if the file is missing, None if it is damaged."""
    lines = _lines(path)
    if lines is None:
        return None
    matches = [_EPOCH_LINE.fullmatch(line) for line in lines]
    epochs = [EpochStart(int(match[1]), int(match[2])) for match in matches if match]
    grow = all(a.epoch < b.epoch and a.start_offset < b.start_offset for a, b in pairwise(epochs))
    fit = all(start.epoch <= INT_MAX and start.start_offset <= OFFSET_MAX for start in epochs)
    if not grow or not fit or len(epochs) < len(lines):
        _log.warning("%s has a malformed line", path)
        return None
    return epochs


def _write(path: Path, lines: Iterable[str]) -> None:
    entries = list(lines)
    replace_file(path, "\n".join([_VERSION, str(len(entries)), *entries, ""]).encode())


def _lines(path: Path) -> list[str] | None:
    """Return the entries; [] if the file is missing, None if its version or count is wrong."""
    try:
        data = path.read_bytes()
    except FileNotFoundError:
        return []
    *lines, last = data.decode("utf-8", "replace").split("\n")
    lines += [last] if last else []
    if len(lines) < 2 or lines[0] != _VERSION or lines[1] != str(len(lines) - 2):
        _log.warning("%s is damaged and is ignored", path)
        return None
    return lines[2:]
