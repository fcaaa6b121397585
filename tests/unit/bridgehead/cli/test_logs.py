"""`bridgehead logs`."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from bridgehead.cli import status


def test_followed_log_does_not_break_a_line_that_is_being_written(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    log = tmp_path / "nodes" / "1" / "node.log"
    log.parent.mkdir(parents=True)
    log.write_bytes(b"one\ntw")
    whole = b"one\ntwo\n"

    def pause(_: float) -> None:
        if log.read_bytes() == whole:
            raise KeyboardInterrupt
        log.write_bytes(whole)

    monkeypatch.setattr(time, "sleep", pause)
    with pytest.raises(KeyboardInterrupt):
        status.logs(None, data_dir=tmp_path, lines=20, follow=True)
    assert capsys.readouterr().out.encode() == whole
