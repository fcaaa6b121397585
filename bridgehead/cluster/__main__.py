"""A supervisor in the background: `python -m bridgehead.cluster`, started by `launch`.

The first line of standard input contains the settings, so that secrets are not in the process list.
The supervisor answers with one line on standard output, `{"ready": cluster.json}` or
`{"error": ...}`. After that it writes only to `supervisor.log`. Unless `"detached"` is true in
the first line, the supervisor stops at the end of standard input, that is, when its parent exits.
"""

from __future__ import annotations

import contextlib
import json
import os
import sys
from typing import Any

from bridgehead.cluster.fork_server import ForkServer, early_fork_server
from bridgehead.exit_codes import ExitCode


def main(running_fork_server: ForkServer | None = None) -> int:
    """Run the cluster. Return 0 after a clean stop or without a request, 4 if it cannot start."""
    os.umask(0o077)  # before the first process and the first file; child processes inherit it
    server = running_fork_server or early_fork_server()
    try:
        return _run(server)
    finally:
        if server is not None:
            server.close()


def _run(running_fork_server: ForkServer | None) -> int:
    # Imported while the fork server imports the modules of a node.
    from bridgehead.cluster.data_directory import DataDirectory
    from bridgehead.cluster.errors import ClusterError
    from bridgehead.cluster.settings import settings_from_json
    from bridgehead.cluster.supervisor import supervise

    line = sys.stdin.buffer.readline()
    if not line:  # `launch.prepare` started this process for a command that starts no cluster
        return 0
    request = json.loads(line)
    settings = settings_from_json(request["settings"])
    log_path = DataDirectory(settings.data_dir).supervisor_log

    def announce(sentence: str) -> None:
        # If the disk is full, the sentence is lost and the cluster keeps running.
        with contextlib.suppress(OSError), log_path.open("a", encoding="utf-8") as log:
            log.write(sentence + "\n")

    def on_ready(document: dict[str, Any]) -> None:
        _respond({"ready": document})
        with log_path.open("ab") as log:
            os.dup2(log.fileno(), sys.stdout.fileno())
            os.dup2(log.fileno(), sys.stderr.fileno())

    try:
        supervise(
            settings,
            announce=announce,
            on_ready=on_ready,
            parent_pipe=None if request["detached"] else sys.stdin.fileno(),
            running_fork_server=running_fork_server,
        )
    except ClusterError as error:
        _respond({"error": str(error)})
        return ExitCode.CANNOT_RUN
    return 0


def _respond(message: dict[str, Any]) -> None:
    sys.stdout.write(json.dumps(message) + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
