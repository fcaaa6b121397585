"""What a rehearsal says of its records: counted, looked for, and lost."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from bridgehead.cluster.errors import ClusterError
from rehearse import records
from rehearse.records import PhaseRecords, RecordLoad
from rehearse.report.document import Phase, Report
from rehearse.report.page import page_of
from rehearse.report.terminal import lines_of


class _Error:
    def name(self) -> str:
        return "NOT_ENOUGH_REPLICAS"


class _Message:
    def __init__(self, number: int, error: _Error | None = None) -> None:
        self._number, self._error = number, error

    def value(self) -> bytes:
        return b"%d" % self._number

    def error(self) -> _Error | None:
        return self._error


def _load(monkeypatch: pytest.MonkeyPatch, *kept: set[int] | None) -> RecordLoad:
    """Return a load that finds `kept` in the topic, one set after each phase."""
    reads = iter(kept)
    monkeypatch.setattr(RecordLoad, "_read_topic", lambda _: next(reads))
    return RecordLoad({}, {}, brokers=2)


def _acknowledge(load: RecordLoad, *numbers: int) -> None:
    for number in numbers:
        message: Any = _Message(number)
        load._delivered(None, message)


def test_lost_record_counts_once_in_the_phase_that_lost_it(monkeypatch: pytest.MonkeyPatch) -> None:
    load = _load(monkeypatch, {1, 2, 3}, {1, 3, 4}, {1, 4})
    phases = []
    for name, numbers in (("hybrid", (1, 2, 3)), ("dual-write", (4,)), ("finalize", ())):
        phases.append(load.begin_phase(name))
        _acknowledge(load, *numbers)
        load.look()
    assert [(phase.acknowledged, phase.lost) for phase in phases] == [(3, 0), (1, 1), (0, 1)]


def test_topic_that_cannot_be_read_is_not_a_loss(monkeypatch: pytest.MonkeyPatch) -> None:
    load = _load(monkeypatch, None, {7})
    unread, read = load.begin_phase("hybrid"), load.begin_phase("dual-write")
    load.phases.pop()
    _acknowledge(load, 7)
    load.look()
    load.phases.append(read)
    load.look()
    assert (unread.lost, read.lost) == (None, 0)


def test_errors_and_waits_belong_to_their_phase(monkeypatch: pytest.MonkeyPatch) -> None:
    load, now = _load(monkeypatch), iter([10.0, 12.5, 20.0, 20.25])
    monkeypatch.setattr("rehearse.records.time.monotonic", lambda: next(now))
    phase, bad, again = load.begin_phase("hybrid"), _Error(), _Message(1)
    rejected: Any = (bad, again)
    load._delivered(*rejected)
    _acknowledge(load, 1, 2)
    messages: list[Any] = [_Message(1), _Message(1), _Message(2, bad)]
    for message in messages:
        load._read(message)
    assert phase.errors == Counter(NOT_ENOUGH_REPLICAS=2)
    assert (phase.acknowledged, phase.consumed) == (2, 1)
    assert (phase.longest_wait_s, phase.longest_silence_s) == (2.5, 0.25)


def test_group_must_read_what_was_acknowledged_and_is_not_lost(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    load = _load(monkeypatch, {1, 2, 4})
    _acknowledge(load, 1, 2, 3, 4)
    unread = [load.unread]
    messages: list[Any] = [_Message(number) for number in (2, 4, 9, 1)]
    load._read(messages.pop(0))
    unread.append(load.unread)
    load.look()  # 3 is lost
    unread.append(load.unread)
    for message in messages:
        load._read(message)
    assert [*unread, load.unread] == [4, 3, 2, 0]


def test_lost_records_are_shown_and_are_not_good() -> None:
    load = PhaseRecords("hybrid", 1_234, 1_200, 0, Counter(), 3.25, 0.5)
    phase = Phase("hybrid", 1_700_000_000.0, 1_700_000_009.0, record_load=load)
    report = Report("source", "3.9.1", "3.8", "hybrid", [4, 5], [3000], phases=[phase])
    judged = [report.is_good]
    load.lost, load.errors = 34, Counter(UNKNOWN_LEADER_EPOCH=2)
    judged.append(report.is_good)
    text = " ".join(" ".join(lines_of(report, Path("out"))).split())
    assert (
        "Records: 1,234 acknowledged, 1,200 consumed, 34 lost, longest wait 3.25 s "
        "(consumer 0.50 s), errors: 2 UNKNOWN_LEADER_EPOCH."
    ) in text
    assert "34 lost records" in page_of(report)
    load.lost = None
    assert "<td>unknown</td>" in page_of(report)
    assert [*judged, report.is_good] == [True, False, True]


def test_missing_client_library_is_one_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    records.check_client()
    monkeypatch.setattr("rehearse.records.importlib.util.find_spec", lambda _: None)
    with pytest.raises(ClusterError, match="`pip install confluent-kafka`, or leave --records out"):
        records.check_client()
