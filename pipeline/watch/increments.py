"""Copies the new lines of a run into files that never change.

Spark's file source reads each file once and whole, so it cannot read a segment that still grows.

    FOLDER/lines/00000007.jsonl    the lines of the seventh call that found new lines
    FOLDER/offsets.json            the last number, and how far each segment has been copied

A file of lines gets its name before the offsets are written. So a file whose number is higher than
the one in `offsets.json` is left over from a killed process. Spark has not read it; it is deleted.
"""

from __future__ import annotations

import json
import os
import re
from pathlib import Path
from typing import BinaryIO, Final

from event_log.evidence import EVENT_SOURCES
from judge.evidence.run_files import open_file, run_files

_SEGMENT: Final = re.compile(rf"(?:{'|'.join(EVENT_SOURCES)})=[^/]*/events-[^/]*\.jsonl")
_PIECE: Final = 1 << 20


class Increments:
    """Copies each line of the run in `run` once, to a new file in `folder`."""

    def __init__(self, run: Path, folder: Path) -> None:
        self._run = run
        self.lines = folder / "lines"
        self._record = folder / "offsets.json"
        self._number = 0
        self._offsets: dict[str, int] = {}
        self.lines.mkdir(parents=True, exist_ok=True)
        if self._record.is_file():
            stored = json.loads(self._record.read_text(encoding="utf-8"))
            self._number, self._offsets = stored["number"], stored["offsets"]
        for path in self.lines.iterdir():
            if path.name.startswith(".") or int(path.stem) > self._number:
                path.unlink()

    def take(self) -> int:
        """Copy all complete new lines; return their number of bytes.

        Raises:
            EvidenceError: the run has an entry that is neither a regular file nor a folder.
        """
        part, number = self.lines / ".part", self._number + 1
        offsets = dict(self._offsets)
        with part.open("wb") as copy:
            for name in self._segments():
                with open_file(self._run, name) as segment:
                    offsets[name] = _copy_lines(segment, offsets.get(name, 0), copy)
            copied = copy.tell()
        if not copied:
            part.unlink()
            return 0
        os.replace(part, self.lines / f"{number:08}.jsonl")
        self._store(number, offsets)
        self._number, self._offsets = number, offsets
        return copied

    def _segments(self) -> list[str]:
        if not self._run.is_dir():  # The run has not begun.
            return []
        return [name for name in run_files(self._run) if _SEGMENT.fullmatch(name)]

    def _store(self, number: int, offsets: dict[str, int]) -> None:
        part = self._record.with_suffix(".part")
        part.write_text(json.dumps({"number": number, "offsets": offsets}), encoding="utf-8")
        os.replace(part, self._record)

    def drop_copied(self) -> None:
        """Delete the copies. Spark must have finished with them."""
        for path in self.lines.glob("*.jsonl"):
            path.unlink()


def _copy_lines(segment: BinaryIO, start: int, copy: BinaryIO) -> int:
    """Copy the complete lines from the byte `start` on; return where they end."""
    end = _end_of_lines(segment, start)
    segment.seek(start)
    while piece := segment.read(min(end - segment.tell(), _PIECE)):
        copy.write(piece)
    return end


def _end_of_lines(opened: BinaryIO, start: int) -> int:
    """Return the place after the last newline; `start` if no newline comes after `start`."""
    end = opened.seek(0, os.SEEK_END)
    while end > start:
        begin = max(start, end - _PIECE)
        opened.seek(begin)
        last_end = opened.read(end - begin).rfind(b"\n")
        if last_end >= 0:
            return begin + last_end + 1
        end = begin
    return start
