"""Runs the judge on a run, and finds the row of each violation."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Sequence
from typing import Any, Final

import orjson

from bridgehead.application import run_module
from bridgehead.ui.reading import RunReader
from bridgehead.ui.vocabulary import NUMBERS

_TIMEOUT_S: Final = 600
_VIOLATIONS_MAX: Final = 20
# A running cluster's evidence grows, so only a violation is final.
_OPEN: Final = "OPEN"
_WHY_OPEN: Final = "the cluster runs: this is decided when it stops"


def judged(reader: RunReader, *, live: bool) -> dict[str, Any]:
    """Return the verdicts of `bridgehead judge RUN --json`, or `{"error": ...}`."""
    try:
        result = run_module("judge", str(reader.run), "--json", timeout_s=_TIMEOUT_S)
    except subprocess.TimeoutExpired:
        return {"error": f"The judge took longer than {_TIMEOUT_S} s."}
    try:
        document: dict[str, Any] = json.loads(result.stdout)
    except ValueError:
        return {"error": result.stderr.strip() or "The judge failed."}
    places = Places(reader)
    for row in document["properties"]:
        row["count"] = len(row["violations"])
        row["violations"] = [
            {**violation, "position": places.last_of(violation["rows"])}
            for violation in row["violations"][:_VIOLATIONS_MAX]
        ]
        if live and row["verdict"] not in ("FAIL", "HANG"):
            row["verdict"], row["why"] = _OPEN, _WHY_OPEN
    if live and document["verdict"] not in ("FAIL", "HANG"):
        document["verdict"] = _OPEN
    document.pop("files", None)
    return document


class Places:
    """Finds the rows of a run that violations name."""

    def __init__(self, reader: RunReader) -> None:
        self._reader = reader
        rows = reader.collector.rows
        transaction = NUMBERS["transaction"]
        self._of_zxid = {
            int(rows.value("zxid", position)): position
            for position in range(rows.base, len(rows))
            if rows.value("kind", position) == transaction
        }

    def last_of(self, names: Sequence[str]) -> int | None:
        """Return the position of the last of these rows that the page has; None: it has none.

        Names are those of `judge.property.Violation`: `zxid/5`, `event/2/1a2b/17`.
        """
        for name in reversed(names):
            kind, *place = name.split("/")
            position = None
            if kind == "zxid" and place and place[0].isdecimal():
                position = self._of_zxid.get(int(place[0]))
            elif kind == "event" and len(place) == 3:
                position = self._event(place[1], int(place[2]))
            if position is not None:
                return position
        return None

    def _event(self, boot: str, seq: int) -> int | None:
        for file in self._reader.files:
            if not file.stream.endswith(f"-{boot}"):
                continue
            offset = 0
            for line in file.path.read_bytes().splitlines(keepends=True):
                if b'"seq"' in line and orjson.loads(line).get("seq") == seq:
                    return self._at(file.number, offset)
                offset += len(line)
        return None

    def _at(self, file: int, offset: int) -> int | None:
        columns = self._reader.collector.rows.columns
        base = self._reader.collector.rows.base
        for index, of in enumerate(columns["offset"]):
            if of == offset and columns["file"][index] == file:
                return base + index
        return None
