"""A supervisor in the background: `python -m bridgehead.cluster`, started by `launch`.

Read first: the first line of standard input holds the settings, so that no secret stands in a
process list. One line of standard output answers: `{"ready": cluster.json}` or `{"error": ...}`.
After that it speaks to `supervisor.log` alone. With `"tethered": true` the end of standard input,
which is the end of whoever started it, is its own.
"""

from __future__ import annotations

import json
import os
import sys
from typing import Any

from bridgehead.cluster.data_directory import DataDirectory
from bridgehead.cluster.errors import ClusterError
from bridgehead.cluster.settings import settings_from_json
from bridgehead.cluster.supervisor import supervise


def main() -> int:
    """Runs the cluster; 0 after an orderly end, 2 when it could not be started."""
    order = json.loads(sys.stdin.buffer.readline())
    settings = settings_from_json(order["settings"])
    log_path = DataDirectory(settings.data_dir).supervisor_log

    def announce(sentence: str) -> None:
        with log_path.open("a", encoding="utf-8") as log:
            log.write(sentence + "\n")

    def on_ready(document: dict[str, Any]) -> None:
        _answer({"ready": document})
        with log_path.open("ab") as log:
            os.dup2(log.fileno(), sys.stdout.fileno())
            os.dup2(log.fileno(), sys.stderr.fileno())

    try:
        supervise(
            settings,
            announce=announce,
            on_ready=on_ready,
            parent_pipe=sys.stdin.fileno() if order["tethered"] else None,
        )
    except ClusterError as error:
        _answer({"error": str(error)})
        return 2
    return 0


def _answer(message: dict[str, Any]) -> None:
    sys.stdout.write(json.dumps(message) + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
