"""Runs the judge on a run, and finds the row of each violation."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Mapping
from typing import Any, Final

import orjson

from bridgehead.application import module_command, module_environment
from bridgehead.ui.reading import COMMITS, RunReader

_TIMEOUT_S: Final = 600
_VIOLATIONS_MAX: Final = 20
# A running cluster's evidence grows, so only a violation is final.
_OPEN: Final = "OPEN"
_WHY_OPEN: Final = "the cluster runs: this is decided when it stops"


def judged(reader: RunReader, *, live: bool) -> dict[str, Any]:
    """Return the verdicts of `bridgehead judge RUN --json`, or `{"error": ...}`."""
    command = module_command("judge", str(reader.run), "--json")
    try:
        result = subprocess.run(
            command,
            env=module_environment(),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=_TIMEOUT_S,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return {"error": f"The judge took longer than {_TIMEOUT_S} s."}
    try:
        document: dict[str, Any] = json.loads(result.stdout)
    except ValueError:
        return {"error": result.stderr.decode("utf-8", "replace").strip() or "The judge failed."}
    for row in document["properties"]:
        row["count"] = len(row["violations"])
        row["violations"] = [
            {**violation, "position": position_of(reader, violation)}
            for violation in row["violations"][:_VIOLATIONS_MAX]
        ]
        if live and row["verdict"] not in ("FAIL", "HANG"):
            row["verdict"], row["why"] = _OPEN, _WHY_OPEN
    if live and document["verdict"] not in ("FAIL", "HANG"):
        document["verdict"] = _OPEN
    document.pop("files", None)
    return document


def position_of(reader: RunReader, violation: Mapping[str, Any]) -> int | None:
    """Return the row that a violation names, such as `event/2/1a2b/17` or `commit/4711`."""
    kind, *place = str(violation.get("row", "")).split("/")
    rows = reader.collector.rows
    if kind == "commit" and place and place[0].isdecimal():
        zxid = float(place[0])
        for position in range(rows.base, len(rows)):
            if rows.value("zxid", position) == zxid and _is_transaction(reader, position):
                return position
    if kind == "event" and len(place) == 3:
        return _event(reader, *place)
    return None


def _is_transaction(reader: RunReader, position: int) -> bool:
    file = reader.files[reader.collector.rows.value("file", position)]
    return file.stream == COMMITS


def _event(reader: RunReader, node: str, boot: str, seq: str) -> int | None:
    numbers = {file.number for file in reader.files if file.stream.endswith(f"-{boot}")}
    rows = reader.collector.rows
    for position in range(rows.base, len(rows)):
        if rows.value("file", position) in numbers:
            event = orjson.loads(reader.line(position))
            if str(event["seq"]) == seq and event["node"] == node:
                return position
    return None
