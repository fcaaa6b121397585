"""Events are lines in order, and reach the operating system when they are flushed."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import fields
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from event_log import writer
from event_log.clock import ManualClock
from event_log.events import ClaimSent, EnvelopeReceived, Event, Stopped
from event_log.writer import FileEventLog


class _Identity(NamedTuple):
    broker_id: int
    incarnation: str
    sequence: int


@pytest.fixture
def log(tmp_path: Path) -> Iterator[FileEventLog]:
    """One boot's log in the test's folder."""
    opened = FileEventLog(
        tmp_path, run_id="run", node="1", boot="abc", host_boot_id="host", clock=ManualClock(5)
    )
    yield opened
    opened.close()


def _lines(folder: Path) -> list[dict[str, Any]]:
    files = sorted(folder.glob("*.jsonl"))
    return [json.loads(line) for path in files for line in path.read_bytes().splitlines()]


def test_nothing_is_written_before_the_flush_and_all_of_it_by_then(
    log: FileEventLog, tmp_path: Path
) -> None:
    """Whoever answers flushes first: then no answer exists without its evidence."""
    log.append(ClaimSent(epoch=1))
    assert _lines(tmp_path) == []
    log.flush()
    assert [line["kind"] for line in _lines(tmp_path)] == ["claim_sent"]


def test_a_line_has_what_all_events_have(log: FileEventLog, tmp_path: Path) -> None:
    """Node, boot, dense sequence and both clocks, beside the event's own fields."""
    identity = (1, "abc", 7)
    started = EnvelopeReceived(request_id="r", identity=identity, attempt=2, sender="User:b")
    for event in (started, Stopped(reason="asked")):
        log.append(event)
    log.flush()
    first, second = _lines(tmp_path)
    assert first == {
        "kind": "envelope_received",
        "seq": 0,
        "mono_ns": 5,
        "wall_ms": 1_700_000_000_000,
        "request_id": "r",
        "identity": [1, "abc", 7],
        "attempt": 2,
        "sender": "User:b",
        "run_id": "run",
        "node": "1",
        "boot": "abc",
        "host_boot_id": "host",
        "schema_version": 1,
    }
    assert second["seq"] == 1


def test_segments_roll_without_a_hole(
    log: FileEventLog, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A long run is several files whose lines follow each other."""
    monkeypatch.setattr(writer, "SEGMENT_BYTES_MAX", 300)
    for epoch in range(10):
        log.append(ClaimSent(epoch=epoch))
        log.flush()
    assert len(list(tmp_path.glob("events-abc-*.jsonl"))) > 1
    assert [line["seq"] for line in _lines(tmp_path)] == list(range(10))


def test_a_full_buffer_does_not_wait_for_the_flush(log: FileEventLog, tmp_path: Path) -> None:
    """Memory stays bounded when nobody answers anybody."""
    while not _lines(tmp_path):
        log.append(Stopped(reason="x" * 1000))
    assert sum(path.stat().st_size for path in tmp_path.glob("*.jsonl")) > writer.BUFFER_BYTES_MAX


def test_a_named_tuple_is_written_as_a_list(log: FileEventLog, tmp_path: Path) -> None:
    """Identities travel as named tuples; readers see what every JSON reader expects."""
    identity = _Identity(1, "abc", 7)
    log.append(EnvelopeReceived(request_id="r", identity=identity, attempt=2, sender="User:b"))
    log.flush()
    assert _lines(tmp_path)[0]["identity"] == [1, "abc", 7]


def test_every_kind_has_fields() -> None:
    """A line is put together from what all events have and what this one has."""
    assert all(fields(kind) for kind in Event.__args__)


def test_every_kind_has_a_name_of_its_own() -> None:
    """The kind is what readers choose their columns by."""
    kinds = [event.kind for event in Event.__args__]
    assert len(kinds) == len(set(kinds))
