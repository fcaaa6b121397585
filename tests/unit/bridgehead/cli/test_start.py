"""`bridgehead --help` imports little, so that it starts fast."""

from __future__ import annotations

import subprocess
import sys

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
