"""node.log: its size is limited, and so is the number of equal lines."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest

from node import node_log
from node.node_log import LINES_MAX, PERIOD_S, NoRepetition


class _Log:
    """The lines that pass the filter."""

    def __init__(self) -> None:
        self.now_s = 1000.0
        self.filter = NoRepetition(lambda: self.now_s)
        self.lines: list[str] = []

    def write(self, text: str, *arguments: object, name: str = "broker_proxy") -> None:
        record = logging.LogRecord(name, logging.INFO, "", 0, text, arguments, None)
        if self.filter.filter(record):
            self.lines.append(record.getMessage())


def test_repetitions_are_counted_and_not_written() -> None:
    log = _Log()
    for number in range(96_258):
        log.write("accept %d failed", number)
    # Beyond the first hundred: numbers 128, 256, ..., 65536.
    assert len(log.lines) == LINES_MAX + 10
    assert log.lines[LINES_MAX - 1] == f"accept {LINES_MAX - 1} failed"
    assert log.lines[-1] == "accept 65535 failed [number 65536 of such lines in 0 s]"


def test_other_lines_are_written_meanwhile() -> None:
    log = _Log()
    for number in range(1_000):
        log.write("accept %d failed", number)
    log.write("another line")
    log.write("accept %d failed", 0, name="another logger")
    assert log.lines[-2:] == ["another line", "accept 0 failed"]


def test_a_line_is_written_again_in_the_next_period() -> None:
    log = _Log()
    for _ in range(LINES_MAX + 1):
        log.write("accept failed")
    log.now_s += PERIOD_S
    log.write("accept failed")
    assert log.lines == ["accept failed"] * (LINES_MAX + 1)


def test_the_kinds_of_lines_that_are_counted_are_limited() -> None:
    log = _Log()
    for number in range(5_000):
        log.write(f"a line with its own text {number}")
    assert len(log.lines) == 5_000
    assert len(log.filter._counts) == node_log._KINDS_MAX


def test_the_file_rotates(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(node_log, "FILE_BYTES_MAX", 2_000)
    monkeypatch.setattr(node_log, "LINES_MAX", 10**6)
    root = logging.getLogger()
    before = root.handlers[:], root.level
    root.handlers = []
    try:
        node_log.start_log(tmp_path / "node.log", lambda: 0.0)
        for number in range(500):
            logging.getLogger("node").warning("line %d", number)
    finally:
        for handler in root.handlers:
            handler.close()
        root.handlers, root.level = before
    files = sorted(path.name for path in tmp_path.iterdir())
    assert files == ["node.log", *(f"node.log.{n}" for n in range(1, node_log.FILES_MAX + 1))]
    assert all(path.stat().st_size <= 2_000 for path in tmp_path.iterdir())
    assert "WARNING line 499 (node)" in (tmp_path / "node.log").read_text()
