"""Lines of JSON, read so that none vanishes: accepted, quarantined with every reason, or counted.

JSON is stricter here than in most readers: a key that stands twice, an integer beyond 64 bits and
NaN are refused, because another reader would understand something else (docs/evidence.md).
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from chaos.evidence.shapes import (
    COMMON,
    EVENT_SHAPES,
    INTEGER_MAX,
    INTEGER_MIN,
    faults_of,
)
from event_log.events import SCHEMA_VERSION


class WrongRunError(Exception):
    """A line of another run: the whole run is refused."""


class _RefusedError(Exception):
    """A line that is not what it should be; the text is its reason."""


@dataclass(slots=True)
class FileAccount:
    """What became of each line of one file."""

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
        """Lines of which it is known what became."""
        named = self.accepted + self.blank + self.duplicates + self.cut
        return named + len(self.quarantined)


def _pairs(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    result = dict(pairs)
    if len(result) < len(pairs):
        raise _RefusedError("duplicate_key")
    return result


def _constant(_text: str) -> Any:
    raise _RefusedError("not_json")


def _integer(text: str) -> int:
    if len(text) > 40:  # Python's own limit would raise another error, much later.
        raise _RefusedError("overflow")
    value = int(text)
    if not INTEGER_MIN <= value <= INTEGER_MAX:
        raise _RefusedError("overflow")
    return value


_DECODER = json.JSONDecoder(
    object_pairs_hook=_pairs, parse_constant=_constant, parse_int=_integer, strict=True
)


def parse_object(line: bytes) -> dict[str, Any] | str:
    """Return the object of a line, or the reason why it is none."""
    try:
        text = line.decode()
    except UnicodeDecodeError:
        return "utf8"
    try:
        value = _DECODER.decode(text)
    except _RefusedError as refused:
        return str(refused)
    except (ValueError, RecursionError):
        return "not_json"
    return value if isinstance(value, dict) else "not_an_object"


def judge_event(line: Mapping[str, Any], run_id: str) -> tuple[str, ...]:
    """Return every reason for which a parsed line is no event of this run; none: it is one.

    Raises:
        WrongRunError: it belongs to another run.
    """
    found = line.get("run_id")
    if isinstance(found, str) and found != run_id:
        raise WrongRunError(found)
    version = line.get("schema_version")
    if type(version) is int and version > SCHEMA_VERSION:
        return ("schema_newer",)
    kind = line.get("kind")
    if isinstance(kind, str) and kind not in EVENT_SHAPES:
        return ("unknown_kind", *faults_of(line, COMMON))
    return faults_of(line, EVENT_SHAPES[kind] if isinstance(kind, str) else COMMON)


def has_unknown_fields(line: Mapping[str, Any]) -> bool:
    """True for an event with a field that its kind does not have."""
    return not line.keys() <= EVENT_SHAPES[line["kind"]].keys()
