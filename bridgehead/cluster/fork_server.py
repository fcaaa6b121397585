"""Forks nodes from a process that has already imported their modules (`node.run.fork_server`).

Imports take most of the time that a node needs to start, and forked nodes share the memory of what
was imported. For each node the process forks a child, which forks the node and exits. The node is
then adopted by the supervisor, because the supervisor is a *subreaper*. Only Linux has subreapers.
The process ends when the cluster has started, to free its memory; a node that starts later is a new
Python process. If `node.run.launcher` has forked the supervisor, it has forked this process, too.
"""

from __future__ import annotations

import ctypes
import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO

from bridgehead.application import module_command, module_environment

PARENT_PIPE_VARIABLE = "BRIDGEHEAD_PARENT_PIPE"
_COMMAND_LINE_BYTES = 4096
_PR_SET_CHILD_SUBREAPER = 36
RESPONSE_TIMEOUT_S = 30.0
RESPONSE_BYTES_MAX = 64
_POLL_S = 0.01


class ForkedProcess:
    """A child of this process that another process has forked; used like `subprocess.Popen`."""

    def __init__(self, pid: int, stdin: IO[bytes] | None = None) -> None:
        self.pid = pid
        self.stdin = stdin
        self._returncode: int | None = None
        self._lock = threading.Lock()

    def poll(self) -> int | None:
        """Return the exit status, negative for a signal; None while the process runs."""
        with self._lock:  # A thread may wait for the end while the event loop polls.
            if self._returncode is None:
                pid, status = os.waitpid(self.pid, os.WNOHANG)
                if pid:
                    self._returncode = os.waitstatus_to_exitcode(status)
            return self._returncode

    def wait(self, timeout: float | None = None) -> int:
        """Return the exit status when the process has exited.

        Raises:
            subprocess.TimeoutExpired: it has not exited after `timeout` seconds.
        """
        began = time.monotonic()
        while (status := self.poll()) is None:
            if timeout is not None and time.monotonic() - began > timeout:
                raise subprocess.TimeoutExpired("node", timeout)
            time.sleep(_POLL_S)
        return status

    def send_signal(self, number: int) -> None:
        """Send a signal unless the process is known to have exited."""
        if self.poll() is None:
            os.kill(self.pid, number)


class ForkServer:
    """The process that forks nodes, as their supervisor sees it."""

    def __init__(
        self, process: subprocess.Popen[bytes] | ForkedProcess, control: socket.socket
    ) -> None:
        """`control` is connected to the standard input of `process`."""
        self._process = process
        self._socket = control
        self._socket.settimeout(RESPONSE_TIMEOUT_S)

    @classmethod
    def start(cls) -> ForkServer:
        """Start the process, with the environment of the nodes."""
        return cls(*start_with_socket("node.run.fork_server", environment=node_environment()))

    def wait_until_ready(self) -> None:
        """Block until the process has imported the modules. If it does not answer, kill it."""
        if not self._receive():
            self.close()

    def fork(self, arguments: Sequence[str], output: Path) -> ForkedProcess | None:
        """Start a node whose standard input is a pipe; append its output to the file `output`.

        Return None if the process does not answer.
        """
        message = json.dumps(list(arguments)).encode()
        stdin, ours = os.pipe()
        with output.open("ab") as file, suppress(OSError):
            socket.send_fds(self._socket, [message], [stdin, file.fileno()])
        os.close(stdin)
        pid = int(self._receive() or 0)
        if pid == 0:
            os.close(ours)
            self.close()
            return None
        return ForkedProcess(pid, os.fdopen(ours, "wb", buffering=0))

    def _receive(self) -> bytes:
        try:
            return self._socket.recv(RESPONSE_BYTES_MAX)
        except OSError:
            return b""

    def close(self) -> None:
        """Kill the process, which has no state; the nodes keep running. May be called twice."""
        self._process.send_signal(signal.SIGKILL)
        self._process.wait()
        self._socket.close()


def start_with_socket(
    module: str, *arguments: str, environment: Mapping[str, str]
) -> tuple[subprocess.Popen[bytes], socket.socket]:
    """Run a module that forks processes; its standard input is the other end of the socket."""
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with theirs:
        process = subprocess.Popen(
            # Forked processes write their command lines over this one; the blanks make room.
            module_command(module, *arguments, " " * _COMMAND_LINE_BYTES),
            stdin=theirs.fileno(),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            env=dict(environment),
            start_new_session=True,
        )
    return process, ours


def node_environment() -> dict[str, str]:
    """Return the environment of nodes."""
    return {**module_environment(), PARENT_PIPE_VARIABLE: "1"}


def early_fork_server() -> ForkServer | None:
    """Start a fork server before anything else, because its imports take longest; only Linux."""
    return ForkServer.start() if sys.platform == "linux" else None


@contextmanager
def fork_server(running: ForkServer | None) -> Iterator[ForkServer | None]:
    """Use the fork server that is `running`, or start one.

    Close it at the end. Yield None if the system has no subreapers.
    """
    if sys.platform != "linux" or ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) != 0:
        yield None
        return
    server = running or ForkServer.start()
    try:
        yield server
    finally:
        server.close()
