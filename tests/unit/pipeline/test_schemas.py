"""Schemas are derived from the dataclasses; patterns match the writer's own lines only."""

from __future__ import annotations

import re
from dataclasses import fields
from pathlib import Path
from typing import Any, Final

import pytest

from event_log.clock import ManualClock
from event_log.events import EVENT_KINDS, Event, MetricsSnapshot, RequestDecided, Started
from event_log.writer import FileEventLog
from pipeline import schemas


@pytest.mark.parametrize("event", EVENT_KINDS.values(), ids=lambda event: event.kind)
def test_kind_has_the_fields_of_its_dataclass(event: Any) -> None:
    """After the common fields, the order is the same. A field is nullable if it may be None."""
    columns = list(schemas.KINDS[event.kind].items())[len(schemas.COMMON) :]
    assert [(name, column.nullable) for name, column in columns] == [
        (field.name, "None" in str(field.type)) for field in fields(event)
    ]


def test_ddl_of_a_schema_has_every_field_and_type() -> None:
    """Spark reads the DDL. The test has one schema of each shape."""
    assert schemas.ddl(schemas.OUTCOME) == (
        "`broker_id` BIGINT, `incarnation` STRING, `sequence` BIGINT, `request_id` STRING, "
        "`element` STRING, `error` BIGINT"
    )
    assert schemas.COMMIT["outcomes"].type == f"ARRAY<STRUCT<{schemas.ddl(schemas.OUTCOME)}>>"
    assert schemas.KINDS["request_decided"]["identity"].type == schemas.IDENTITY
    assert schemas.KINDS["request_decided"]["response_sha256"] == ("STRING", True)
    assert schemas.KINDS["metrics_snapshot"]["values"].type == "MAP<STRING, DOUBLE>"


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
def test_pattern_matches_the_writers_lines(event: Event, tmp_path: Path) -> None:
    """Each of the texts that `split_columns` converts has a group."""
    line = _written(event, tmp_path)
    match = re.search(_python(schemas.exact_pattern(event.kind)), line)
    assert match is not None
    assert match.groups()[:7] == ("0", "0", "1700000000000", "r", "1", "b", "h")
    replacement = schemas.exact_replacement(event.kind)
    assert replacement.count(schemas.SEPARATOR) + 1 == len(match.groups())


def test_texts_of_values_are_split_and_converted_by_position(tmp_path: Path) -> None:
    """The identity has three texts; a string that may be null keeps its quotes."""
    line = _written(_DECIDED, tmp_path)
    match = re.search(_python(schemas.exact_pattern("request_decided")), line)
    assert match is not None
    texts = match.groups()[7:]
    assert texts[:6] == ("1.b.1.1", "1", "b", "7", "19", r"User:ä \"q\" \\")
    assert texts[9:] == (r'[["a",0],["b\\",36]]', '["b"]', "0", "false", '"a1"')
    columns = schemas.split_columns("request_decided")
    assert columns[0] == "t[0] AS `request_id`"
    assert columns[2] == "CAST(v[4] AS BIGINT) AS `api_key`"
    assert "substring(t[13]" in columns[-1]


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ('"seq":0', '"seq":"0"'),
        ('"seq":0', '"seq":0.0'),
        ('"seq":0', '"seq":9999999999999999999'),
        ('"seq":0', '"seq":00'),
        ('"boot":"b"', r'"boot":"\/"'),
        ('"boot":"b"', r'"boot":"\u0062"'),
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
def test_pattern_rejects_any_other_line(old: str, new: str, tmp_path: Path) -> None:
    line = _written(_DECIDED, tmp_path)
    assert old in line
    changed = line.replace(old, new, 1)
    assert not re.search(_python(schemas.exact_pattern(_DECIDED.kind)), changed)


def _python(pattern: str) -> str:
    """Java's `\\z` is Python's `\\Z`."""
    return pattern.replace(r"\z", r"\Z")
