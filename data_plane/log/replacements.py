"""Completes or undoes a replacement that a kill interrupted, as Kafka's `LogLoader` does.

Compaction writes files with the suffix `.cleaned`. When they are complete, it renames them to
`.swap`, then the segments that they replace to `.deleted`, and at last removes the suffix `.swap`.
If a segment still has a `.cleaned` file, its replacement and those of later segments are undone.
All other replacements that have `.swap` files are completed.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

from data_plane.log.open_files import READING, OpenFiles
from data_plane.log.segment import CLEANED, DELETED, SWAP, Segment

_KINDS: Final = (".log", ".index", ".timeindex")


def finish_replacements(folder: Path) -> None:
    """Complete or undo each replacement, so that no file in `folder` keeps one of the suffixes."""
    for path in folder.glob("*" + DELETED):
        path.unlink()
    incomplete = list(folder.glob("*" + CLEANED))
    first = min((_base_offset(path) for path in incomplete), default=None)
    for path in folder.glob("*" + SWAP):
        if first is not None and _base_offset(path) >= first:
            path.unlink()
    for path in incomplete:
        path.unlink()
    for path in sorted(folder.glob("*.log" + SWAP)):
        _delete_replaced(folder, _base_offset(path))
    for path in folder.glob("*" + SWAP):
        os.replace(path, path.with_suffix(""))


def _delete_replaced(folder: Path, base_offset: int) -> None:
    """Delete the segments whose first offset is in the range of a `.swap` segment."""
    files = OpenFiles(flags=READING)
    swap = Segment(folder, base_offset, files, SWAP)
    swap.size = os.path.getsize(swap.path)
    end = base_offset
    for placed in swap.batches(0):
        end = placed.header.next_offset
    files.close_all()
    for path in folder.iterdir():
        if path.suffix in _KINDS and base_offset <= _base_offset(path) < end:
            path.unlink()


def _base_offset(path: Path) -> int:
    return int(path.name.split(".", 1)[0])
