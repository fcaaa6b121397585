"""`python -m node.run.launcher BLANKS`: forks supervisors for a program with several clusters.

Standard input is a socket. When the process has imported the modules of a supervisor and of a node,
it receives one message for each cluster: the working directory and PYTHONPATH as JSON, with the
supervisor's standard input, output and error. The answer is the supervisor's pid, with a pidfd.
Each supervisor gets a fork server of its own (`fork_server`), because it has to be the parent of
its nodes. The process exits when its standard input is closed. BLANKS is never read: the forked
processes write their command lines over it.
"""

from __future__ import annotations

import importlib
import json
import os
import signal
import socket
import sys
from typing import Final

from bridgehead.application import module_command
from bridgehead.cluster.__main__ import main as run_supervisor
from bridgehead.cluster.fork_server import ForkedProcess, ForkServer, node_environment
from node.run.command_line import set_command_line
from node.run.fork_server import fork_nodes, preload

_MESSAGE_BYTES_MAX: Final = 1 << 16


def main() -> int:
    """Fork supervisors until the input ends. In a forked process, return its exit code."""
    importlib.import_module("bridgehead.cluster.supervisor")
    importlib.import_module("bridgehead.cluster.certificates")  # most clusters make some
    preload()
    set_command_line(module_command("node.run.launcher"))
    # The kernel reaps the supervisors; the program waits for their pidfds.
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    control = socket.socket(fileno=os.dup(sys.stdin.fileno()))
    while True:
        message, descriptors, _, _ = socket.recv_fds(control, _MESSAGE_BYTES_MAX, 3)
        if not message:
            return 0
        pid = os.fork()
        if pid == 0:
            control.close()
            _set_up(descriptors)
            request = json.loads(message)
            os.chdir(request["working_directory"])
            _change_path(request["python_path"])
            return _run()
        for descriptor in descriptors:
            os.close(descriptor)
        pidfd = os.pidfd_open(pid)
        socket.send_fds(control, [b"%d" % pid], [pidfd])
        os.close(pidfd)


def _set_up(descriptors: list[int]) -> None:
    """Lead a new session, with the three descriptors as standard input, output and error."""
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    os.setsid()
    for standard, descriptor in enumerate(descriptors):
        os.dup2(descriptor, standard)
        os.close(descriptor)


def _change_path(python_path: str) -> None:
    """Replace PYTHONPATH and its folders, as in a new interpreter."""
    before, after = os.environ["PYTHONPATH"].split(os.pathsep), python_path.split(os.pathsep)
    sys.path[:] = [*after, *(folder for folder in sys.path if folder not in before)]
    os.environ["PYTHONPATH"] = python_path


def _run() -> int:
    """Fork the fork server of the nodes, then run the supervisor."""
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    pid = os.fork()
    if pid == 0:
        ours.close()
        _set_up([os.open(os.devnull, os.O_RDWR) for _ in range(3)])
        os.environ.update(node_environment())
        return fork_nodes(theirs)
    theirs.close()
    set_command_line(module_command("bridgehead.cluster"))
    return run_supervisor(ForkServer(ForkedProcess(pid), ours))


if __name__ == "__main__":
    sys.exit(main())
