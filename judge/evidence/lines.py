"""Reads lines of JSON.

A line is accepted, or quarantined with the reasons for its rejection. Blank lines, duplicates and
lines that a kill cut off are only counted.

This reader of JSON is stricter than most: it rejects duplicate keys, integers beyond 64 bits and
NaN, because other readers would read them differently (docs/evidence.md).
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import orjson

from event_log.events import SCHEMA_VERSION
from judge.evidence.shapes import ADDED_LATER, COMMON, EVENT_SHAPES, faults_of

INTEGER_MIN, INTEGER_MAX = -(2**63), 2**63 - 1


class WrongRunError(Exception):
    """A line of another run: the whole run is rejected."""


class _RejectedError(Exception):
    """A line that is not valid; the text is the reason."""


@dataclass(slots=True)
class FileAccount:
    """The counts of one file's lines."""

    path: str
    lines: int
    accepted: int = 0
    blank: int = 0
    duplicates: int = 0
    cut: int = 0
    unknown_fields: int = 0
    quarantined: list[tuple[int, tuple[str, ...]]] = field(default_factory=list)

    @property
    def accounted(self) -> int:
        """The sum of all counts: accepted, quarantined, blank, duplicate and cut-off lines."""
        named = self.accepted + self.blank + self.duplicates + self.cut
        return named + len(self.quarantined)

    def quarantine(self, number: int, reasons: tuple[str, ...]) -> str:
        """Record a quarantined line; return the sentence that reports it as missing evidence."""
        self.quarantined.append((number, reasons))
        return f"{self.path}:{number} is quarantined: {', '.join(reasons)}"


def _pairs(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    result = dict(pairs)
    if len(result) < len(pairs):
        raise _RejectedError("duplicate_key")
    return result


def _constant(_text: str) -> Any:
    raise _RejectedError("not_json")


def _integer(text: str) -> int:
    if len(text) > 40:  # From 4,301 digits on, int() raises ValueError.
        raise _RejectedError("overflow")
    value = int(text)
    if not INTEGER_MIN <= value <= INTEGER_MAX:
        raise _RejectedError("overflow")
    return value


_DECODER = json.JSONDecoder(
    object_pairs_hook=_pairs, parse_constant=_constant, parse_int=_integer, strict=True
)


def parse_object(line: bytes) -> dict[str, Any] | str:
    """Return the object of a line, or the reason to quarantine it."""
    return _unchanged(line) or _strictly_parsed(line)


def _unchanged(line: bytes) -> dict[str, Any] | None:
    """Return the object of a line if the line is exactly as a node wrote it, else None.

    orjson is fast but not strict. If the value encodes to the same bytes, nothing was lost.
    """
    try:
        value = orjson.loads(line)
        if type(value) is dict and orjson.dumps(value, option=orjson.OPT_STRICT_INTEGER) == line:
            return value
    except (TypeError, ValueError):  # TypeError: an integer beyond 53 bits
        pass
    return None


def _strictly_parsed(line: bytes) -> dict[str, Any] | str:
    try:
        text = line.decode()
    except UnicodeDecodeError:
        return "utf8"
    try:
        value = _DECODER.decode(text)
    except _RejectedError as rejected:
        return str(rejected)
    except (ValueError, RecursionError):
        return "not_json"
    return value if isinstance(value, dict) else "not_an_object"


def judge_event(line: dict[str, Any], run_id: str) -> tuple[str, ...]:
    """Return the reasons to quarantine a parsed line; () if it is a valid event of this run.

    Fields that earlier versions did not write are added to the line, with their defaults.

    Raises:
        WrongRunError: the line belongs to another run.
    """
    named_run = line.get("run_id")
    if isinstance(named_run, str) and named_run != run_id:
        raise WrongRunError(named_run)
    version = line.get("schema_version")
    if type(version) is int and version > SCHEMA_VERSION:
        return ("schema_newer",)
    kind = line.get("kind")
    if not isinstance(kind, str):
        return faults_of(line, COMMON)
    if kind not in EVENT_SHAPES:
        return ("unknown_kind", *faults_of(line, COMMON))
    for name, default in ADDED_LATER[kind].items():
        line.setdefault(name, default)
    return faults_of(line, EVENT_SHAPES[kind])


def has_unknown_fields(line: Mapping[str, Any]) -> bool:
    """Return whether a valid event has fields besides those of its kind."""
    return len(line) > len(EVENT_SHAPES[line["kind"]].tests)
