"""Child processes, each in its own session.

A terminal sends the SIGINT of Ctrl-C to its whole foreground process group. The children are not in
that group, so the supervisor stops them in its own order. A pid file alone proves nothing, because
pids are reused; `pid_is_ours` also checks the command line.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import IO

import psutil

from bridgehead.cluster.fork_server import ForkedProcess

Child = subprocess.Popen[bytes] | ForkedProcess
_DIE_WITH_PARENT = Path(__file__).with_name("die_with_parent.py")
_POLL_S = 0.02


def start_child(
    command: Sequence[str],
    *,
    output: Path,
    errors: Path | None = None,
    environment: Mapping[str, str] | None = None,
    stdin: int | IO[bytes] = subprocess.DEVNULL,
) -> subprocess.Popen[bytes]:
    """Start `command` in a new session; append its output to `output`, and errors to `errors`."""
    output.parent.mkdir(parents=True, exist_ok=True)
    with output.open("ab") as file, (errors or output).open("ab") as error_file:
        return subprocess.Popen(
            list(command),
            stdin=stdin,
            stdout=file,
            stderr=error_file,
            env=None if environment is None else dict(environment),
            start_new_session=True,
        )


def die_with_parent(command: Sequence[str]) -> list[str]:
    """Return a command line that runs `command` and kills it when this process ends."""
    return [sys.executable, "-I", "-S", str(_DIE_WITH_PARENT), str(os.getpid()), *command]


def send_signal(process: Child, number: signal.Signals) -> None:
    """Send a signal unless the process has exited."""
    with contextlib.suppress(ProcessLookupError):
        process.send_signal(number)


def stop_child(process: Child, *, timeout_s: float = 10.0) -> None:
    """Stop the process: SIGTERM, and after `timeout_s` SIGKILL. Return when it has exited."""
    send_signal(process, signal.SIGCONT)  # a frozen process would not handle SIGTERM
    send_signal(process, signal.SIGTERM)
    try:
        process.wait(timeout_s)
    except subprocess.TimeoutExpired:
        send_signal(process, signal.SIGKILL)
        process.wait()
    if process.stdin is not None:
        process.stdin.close()


def pid_is_ours(pid: int, marker: str) -> bool:
    """Return whether a live process has `marker`, a path that only we use, in its command line."""
    try:
        process = psutil.Process(pid)
        if process.status() == psutil.STATUS_ZOMBIE:
            return False
        return any(marker in argument for argument in process.cmdline())
    except psutil.Error:
        return False


def stop_stray(pid_file: Path, marker: str, *, timeout_s: float = 5.0) -> int | None:
    """Kill the process that `pid_file` names if it is alive and ours; always remove the file.

    Returns:
        The pid of the killed process, or None.
    """
    try:
        pid = int(pid_file.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        pid = 0
    ended = None
    if pid > 1 and pid_is_ours(pid, marker):
        os.kill(pid, signal.SIGKILL)
        deadline = time.monotonic() + timeout_s
        while pid_is_ours(pid, marker) and time.monotonic() < deadline:
            time.sleep(_POLL_S)
        ended = pid
    pid_file.unlink(missing_ok=True)
    return ended
