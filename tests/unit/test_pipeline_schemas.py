"""The tables' schemas are the events' dataclasses, field by field; a line's pattern is its kind."""

from __future__ import annotations

import re
from dataclasses import fields
from pathlib import Path
from typing import Any, Final, get_args

import pytest

from event_log.clock import ManualClock
from event_log.commits import CommitLine, CommitOperation, CommitOutcome, DumpLine
from event_log.events import Event, MetricsSnapshot, RequestDecided, Started
from event_log.writer import FileEventLog
from pipeline import schemas

_IDENTITY: Final = "STRUCT<broker_id: BIGINT, incarnation: STRING, sequence: BIGINT>"
_TYPES: Final = {
    "str": ("STRING", False),
    "int": ("BIGINT", False),
    "bool": ("BOOLEAN", False),
    "float": ("DOUBLE", False),
    "str | None": ("STRING", True),
    "int | None": ("BIGINT", True),
    "Identity": (_IDENTITY, False),
    "list[str]": ("ARRAY<STRING>", False),
    "list[tuple[str, int]]": ("ARRAY<STRUCT<element: STRING, error: BIGINT>>", False),
    "dict[str, float]": ("MAP<STRING, DOUBLE>", False),
}


def _told(kind: Any) -> dict[str, tuple[str, bool]]:
    return {each.name: _TYPES[str(each.type)] for each in fields(kind)}


@pytest.mark.parametrize("event", get_args(Event), ids=lambda event: event.kind)
def test_a_kind_has_the_columns_of_its_dataclass(event: Any) -> None:
    """In the same order, with the same types, null where the dataclass allows None."""
    assert schemas.columns(schemas.KINDS[event.kind]) == _told(event)


def test_no_schema_is_left_over() -> None:
    """A kind that is gone would be accepted for ever."""
    assert set(schemas.KINDS) == {event.kind for event in get_args(Event)}


@pytest.mark.parametrize(
    ("shape", "kind"),
    [("/operation", CommitOperation), ("/outcome", CommitOutcome), ("/dump", DumpLine)],
)
def test_a_shape_has_the_fields_of_its_dataclass(shape: str, kind: Any) -> None:
    """Commit lines and dumps, too."""
    assert schemas.columns(schemas.OTHERS[shape]) == _told(kind)


def test_a_commit_line_has_the_fields_of_its_dataclass() -> None:
    """Its lists are lists of the shapes above."""
    assert list(schemas.columns(schemas.COMMIT)) == [each.name for each in fields(CommitLine)]


def _written(event: Event, folder: Path) -> str:
    log = FileEventLog(
        folder, run_id="r", node="1", boot="b", host_boot_id="h", clock=ManualClock()
    )
    log.append(event)
    log.close()
    (path,) = folder.glob("*.jsonl")
    return path.read_text(encoding="utf-8").rstrip("\n")


_DECIDED: Final = RequestDecided(
    "1.b.1.1",
    (1, "b", 7),
    19,
    'User:ä "q" \\',
    1,
    2,
    3,
    [("a", 0), ("b\\", 36)],
    ["b"],
    0,
    False,
    "a1",
)


@pytest.mark.parametrize(
    "event",
    [
        _DECIDED,
        Started("b", "1.0", 4711),
        MetricsSnapshot({'count{request="A"}': 1, "rate": 0.5, "tiny": 1e-7}),
    ],
    ids=lambda event: event.kind,
)
def test_what_the_writer_writes_needs_no_second_look(event: Event, tmp_path: Path) -> None:
    """The pattern of a kind is the writer's own form."""
    line = _written(event, tmp_path)
    assert re.search(_python(schemas.exact_pattern(event.kind)), line)


@pytest.mark.parametrize(
    ("what", "by"),
    [
        ('"seq":0', '"seq":"0"'),
        ('"seq":0', '"seq":0.0'),
        ('"seq":0', '"seq":9999999999999999999'),
        ('"seq":0', '"seq":00'),
        ('"epoch":1', '"epoch":null'),
        ('"epoch":1', '"epoch":1,"new":1'),
        ('"epoch":1', '"epoch":1,"epoch":1'),
        ('"epoch":1,', ""),
        ('["a",0]', '["a",0,1]'),
        ('["a",0]', '[0,"a"]'),
        ('"schema_version":1', '"schema_version":2'),
        ('"a1"}', '"a1"} '),
        ('"a1"}', '"a1"}}'),
    ],
)
def test_what_is_otherwise_is_looked_at(what: str, by: str, tmp_path: Path) -> None:
    """A pattern that lets through what is wrong would make it an event."""
    line = _written(_DECIDED, tmp_path)
    assert what in line
    changed = line.replace(what, by, 1)
    assert not re.search(_python(schemas.exact_pattern(_DECIDED.kind)), changed)


def _python(pattern: str) -> str:
    """Java's end of input is Python's `\\Z`."""
    return pattern.replace(r"\z", r"\Z")
