"""The event log: lines, order, buffering and segments."""

from __future__ import annotations

import errno
import json
import os
from collections.abc import Iterator
from dataclasses import fields
from pathlib import Path
from typing import Any, NamedTuple
from unittest.mock import Mock

import pytest

from event_log import writer
from event_log.clock import ManualClock
from event_log.events import (
    EVENT_KINDS,
    ClaimSent,
    Disconnected,
    EnvelopeReceived,
    MetricsSnapshot,
    RequestReceived,
    Stopped,
)
from event_log.writer import FileEventLog


class _Identity(NamedTuple):
    broker_id: int
    incarnation: str
    sequence: int


@pytest.fixture
def log(tmp_path: Path) -> Iterator[FileEventLog]:
    opened = FileEventLog(
        tmp_path, run_id="run", node="1", boot="abc", host_boot_id="host", clock=ManualClock(5)
    )
    yield opened
    opened.close()


def _lines(folder: Path) -> list[dict[str, Any]]:
    files = sorted(folder.glob("*.jsonl"))
    return [json.loads(line) for path in files for line in path.read_bytes().splitlines()]


def test_events_are_written_when_flushed(log: FileEventLog, tmp_path: Path) -> None:
    """A broker flushes before it responds, so no response exists without its evidence."""
    log.append(ClaimSent(epoch=1))
    assert _lines(tmp_path) == []
    log.flush()
    assert [line["kind"] for line in _lines(tmp_path)] == ["claim_sent"]


def test_a_flush_is_asked_for_once_for_all_buffered_events(log: FileEventLog) -> None:
    """An idle node has no timer that flushes; the first event after a flush starts one."""
    asked = []
    log.on_buffered = lambda: asked.append("flush")
    for _ in range(3):
        log.append(ClaimSent(epoch=1))
    assert asked == ["flush"]
    log.flush()
    assert asked == ["flush"]
    log.append(ClaimSent(epoch=2))
    assert asked == ["flush", "flush"]


def test_a_line_has_the_common_fields(log: FileEventLog, tmp_path: Path) -> None:
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


def test_segments_roll_without_gaps(
    log: FileEventLog, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(writer, "SEGMENT_BYTES_MAX", 300)
    for epoch in range(10):
        log.append(ClaimSent(epoch=epoch))
        log.flush()
    assert len(list(tmp_path.glob("events-abc-*.jsonl"))) > 1
    assert [line["seq"] for line in _lines(tmp_path)] == list(range(10))


def test_a_full_buffer_is_written_without_a_flush(log: FileEventLog, tmp_path: Path) -> None:
    while not _lines(tmp_path):
        log.append(Stopped(reason="x" * 1000))
    assert sum(path.stat().st_size for path in tmp_path.glob("*.jsonl")) > writer.BUFFER_BYTES_MAX


def test_a_named_tuple_is_written_as_a_list(log: FileEventLog, tmp_path: Path) -> None:
    identity = _Identity(1, "abc", 7)
    log.append(EnvelopeReceived(request_id="r", identity=identity, attempt=2, sender="User:b"))
    log.flush()
    assert _lines(tmp_path)[0]["identity"] == [1, "abc", 7]


def test_every_kind_has_fields() -> None:
    """The writer puts a comma between the common fields and the event's own fields."""
    assert all(fields(event) for event in EVENT_KINDS.values())


def test_a_full_disk_loses_no_lines(
    log: FileEventLog, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The next flush continues in the middle of the line that did not fit on the disk."""
    log.append(ClaimSent(epoch=1))
    log.append(ClaimSent(epoch=2))
    write, room = os.write, [100, 0, 10, 10_000]

    def limited(file: int, data: bytes) -> int:
        size = room.pop(0)
        if not size:
            raise OSError(errno.ENOSPC, "No space left on device")
        return write(file, data[:size])

    monkeypatch.setattr(os, "write", limited)
    with pytest.raises(OSError, match="No space"):
        log.flush()
    log.append(ClaimSent(epoch=3))
    log.flush()
    assert [line["epoch"] for line in _lines(tmp_path)] == [1, 2, 3]


def _request(number: int) -> RequestReceived:
    none: Any = None
    values = {field.name: none for field in fields(RequestReceived)}
    return RequestReceived(**values | {"request_id": f"{number}"})


def test_on_a_full_disk_a_full_buffer_accepts_no_events_of_new_work(
    log: FileEventLog, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The caller counts an event only if `append` returns, so the metrics agree with the events."""
    log.append(_request(1))
    log.append(Stopped(reason="x" * writer.BUFFER_BYTES_MAX))
    with monkeypatch.context() as patch:
        patch.setattr(os, "write", Mock(side_effect=OSError(errno.ENOSPC, "No space left")))
        with pytest.raises(OSError, match="No space"):
            log.append(_request(2))
        log.append(Disconnected(connection="1"))
    log.flush()
    kinds = [line["kind"] for line in _lines(tmp_path)]
    assert kinds == ["request_received", "stopped", "disconnected"]


def test_on_a_full_disk_the_buffer_is_bounded(
    log: FileEventLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "write", Mock(side_effect=OSError(errno.ENOSPC, "No space left")))
    log.append(Stopped(reason="x" * writer.RESERVE_BYTES_MAX))
    with pytest.raises(OSError, match="No space"):
        log.append(Disconnected(connection="1"))


def test_a_segment_stays_in_use_until_the_next_one_is_open(
    log: FileEventLog, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(writer, "SEGMENT_BYTES_MAX", 1)
    log.append(ClaimSent(epoch=1))
    with monkeypatch.context() as patch:
        patch.setattr(os, "open", Mock(side_effect=OSError(errno.ENOSPC, "No space left")))
        with pytest.raises(OSError, match="No space"):
            log.flush()
    log.append(ClaimSent(epoch=2))
    log.flush()
    assert [line["epoch"] for line in _lines(tmp_path)] == [1, 2]


def test_a_lone_surrogate_is_escaped(log: FileEventLog, tmp_path: Path) -> None:
    """A user's principal builder can return one, for example."""
    identity = (1, "abc", 7)
    log.append(EnvelopeReceived(request_id="r", identity=identity, attempt=1, sender="U:\ud800b"))
    log.append(MetricsSnapshot(values={"\udfff": 1.0}))
    log.flush()
    first, second = _lines(tmp_path)
    assert (first["sender"], first["identity"]) == ("U:\\ud800b", [1, "abc", 7])
    assert second["values"] == {"\\udfff": 1.0}
