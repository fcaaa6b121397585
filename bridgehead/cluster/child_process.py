"""Child processes: started in a session of their own, stopped by pid, never mistaken for others.

Read first: a session of their own keeps Ctrl-C, which a terminal sends to its whole foreground
group, away from them: the supervisor stops them in its own order. A pid file alone proves nothing,
since pids are used again: `pid_is_ours` looks at the command line.
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

_TETHER = Path(__file__).with_name("tether.py")
_POLL_S = 0.02


def start_child(
    command: Sequence[str],
    *,
    output: Path,
    environment: Mapping[str, str] | None = None,
    stdin: int | IO[bytes] = subprocess.DEVNULL,
) -> subprocess.Popen[bytes]:
    """Starts `command` in a new session; what it prints is appended to the file `output`."""
    output.parent.mkdir(parents=True, exist_ok=True)
    with output.open("ab") as file:
        return subprocess.Popen(
            list(command),
            stdin=stdin,
            stdout=file,
            stderr=file,
            env=None if environment is None else dict(environment),
            start_new_session=True,
        )


def tethered(command: Sequence[str]) -> list[str]:
    """`command`, to be started by this process and to die with it."""
    return [sys.executable, "-I", "-S", str(_TETHER), str(os.getpid()), *command]


def send_signal(process: subprocess.Popen[bytes], number: signal.Signals) -> None:
    """Sends `number` unless the process has ended."""
    with contextlib.suppress(ProcessLookupError):
        process.send_signal(number)


def stop_child(process: subprocess.Popen[bytes], *, timeout_s: float = 10.0) -> None:
    """Asks the process to end (SIGTERM), ends it after `timeout_s` (SIGKILL), reaps it."""
    send_signal(process, signal.SIGCONT)  # a frozen process would not hear anything else
    send_signal(process, signal.SIGTERM)
    try:
        process.wait(timeout_s)
    except subprocess.TimeoutExpired:
        send_signal(process, signal.SIGKILL)
        process.wait()
    if process.stdin is not None:
        process.stdin.close()


def pid_is_ours(pid: int, marker: str) -> bool:
    """Whether a live process `pid` has `marker` (a path only we use) in its command line."""
    try:
        process = psutil.Process(pid)
        if process.status() == psutil.STATUS_ZOMBIE:
            return False
        return any(marker in argument for argument in process.cmdline())
    except psutil.Error:
        return False


def stop_stray(pid_file: Path, marker: str, *, timeout_s: float = 5.0) -> int | None:
    """Ends the process that `pid_file` names, if it runs and is ours; removes the file.

    Returns:
        The pid of the process that was ended, or None.
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
