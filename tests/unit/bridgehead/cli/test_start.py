"""`bridgehead --help` imports little, so that it starts fast."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

import pytest

from bridgehead.cli import status

_HELP = """
import sys
sys.argv = ["bridgehead", "--help"]
from bridgehead.cli.main import main
try:
    main()
except SystemExit:
    print(*sys.modules, file=sys.stderr)
"""


def test_help_does_not_import_asyncio() -> None:
    done = subprocess.run(
        [sys.executable, "-c", _HELP], capture_output=True, text=True, check=True, timeout=60
    )
    assert "Usage" in done.stdout
    modules = done.stderr.split()
    assert "bridgehead.cli.commands" in modules
    assert "asyncio" not in modules


# `bridgehead logs`.


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
