"""Forks the supervisors of a program that starts several clusters (`node.run.launcher`).

A supervisor that is forked by a process with all modules imported needs a quarter of the processor
time to start its cluster. But for one cluster alone it is slower, because nothing else runs during
the imports. So the first cluster of a program does not use a launcher.
"""

from __future__ import annotations

import atexit
import contextlib
import json
import os
import select
import signal
import socket
import subprocess
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import IO

from bridgehead.cluster.fork_server import (
    RESPONSE_BYTES_MAX,
    RESPONSE_TIMEOUT_S,
    start_with_socket,
)

_CHANGED_BY_PYTEST = "PYTEST_CURRENT_TEST"


class LaunchedSupervisor:
    """A supervisor that the launcher has forked; used like `subprocess.Popen`.

    It is not a child of this process, so its exit status is not known.
    """

    def __init__(
        self, pid: int, pidfd: int, stdin: IO[bytes], stdout: IO[bytes], stderr: IO[bytes]
    ) -> None:
        self.pid = pid
        self.stdin = stdin
        self.stdout = stdout
        self.stderr = stderr
        self._pidfd = pidfd

    def __del__(self) -> None:
        """Close the pidfd."""
        os.close(self._pidfd)

    def terminate(self) -> None:
        """Send SIGTERM unless the process has exited."""
        self._send(signal.SIGTERM)

    def kill(self) -> None:
        """Send SIGKILL unless the process has exited."""
        self._send(signal.SIGKILL)

    def wait(self) -> None:
        """Return when the process has exited."""
        poll = select.poll()
        poll.register(self._pidfd, select.POLLIN)
        poll.poll()

    def _send(self, number: signal.Signals) -> None:
        with contextlib.suppress(ProcessLookupError):
            signal.pidfd_send_signal(self._pidfd, number)


SupervisorProcess = subprocess.Popen[bytes] | LaunchedSupervisor


class _Launcher:
    """The process that forks supervisors, with one environment."""

    def __init__(self, environment: Mapping[str, str]) -> None:
        self._process, self._socket = start_with_socket(
            "node.run.launcher", environment=environment
        )
        self._socket.settimeout(RESPONSE_TIMEOUT_S)
        self._owner = os.getpid()

    def fork(self, python_path: str) -> LaunchedSupervisor | None:
        """Fork a supervisor; return None if the process does not answer."""
        request = {
            "working_directory": str(Path.cwd()),
            "python_path": python_path,
        }
        (stdin, to_stdin), (from_stdout, stdout), (from_stderr, stderr) = _pipe(), _pipe(), _pipe()
        with contextlib.suppress(OSError), stdin, stdout, stderr:
            theirs = [stdin.fileno(), stdout.fileno(), stderr.fileno()]
            socket.send_fds(self._socket, [json.dumps(request).encode()], theirs)
            pid, received, _, _ = socket.recv_fds(self._socket, RESPONSE_BYTES_MAX, 1)
            if received:
                return LaunchedSupervisor(int(pid), received[0], to_stdin, from_stdout, from_stderr)
        for ours in (to_stdin, from_stdout, from_stderr):
            ours.close()
        return None

    def close(self) -> None:
        """Kill the process unless this one is a fork of its owner; the supervisors keep running."""
        if os.getpid() == self._owner:
            self._process.kill()
            self._process.wait()
        self._socket.close()


def _pipe() -> tuple[IO[bytes], IO[bytes]]:
    """Return the end to read from and the end to write to."""
    reader, writer = os.pipe()
    return os.fdopen(reader, "rb"), os.fdopen(writer, "wb")


class _Launchers:
    """The launcher of this process."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._launcher: _Launcher | None = None
        self._key: object = None

    def fork(self, environment: Mapping[str, str]) -> LaunchedSupervisor | None:
        """Fork a supervisor with its standard streams as pipes.

        Return None for the first cluster with this environment, or if the system cannot do it.
        Some variables have an effect only when an interpreter starts. So another environment needs
        another launcher, unless only PYTHONPATH differs.
        """
        if not hasattr(os, "pidfd_open"):  # only Linux has it
            return None
        # A process that was forked from this one must not use its launcher.
        key = (os.getpid(), {**environment, "PYTHONPATH": "", _CHANGED_BY_PYTEST: ""})
        with self._lock:
            if key != self._key:
                self.close()
                self._key = key
                return None
            if self._launcher is None:
                self._launcher = _Launcher(environment)
            forked = None
            try:
                forked = self._launcher.fork(environment["PYTHONPATH"])
            finally:
                if forked is None:  # Its answer may still come, for example after Ctrl-C.
                    self.close()
            return forked

    def close(self) -> None:
        """End the launcher."""
        launcher, self._launcher = self._launcher, None
        if launcher is not None:
            launcher.close()


_launchers = _Launchers()
atexit.register(_launchers.close)
fork_supervisor = _launchers.fork
