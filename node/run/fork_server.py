"""`python -m node.run.fork_server BLANKS`: forks the nodes of a cluster.

Standard input is a socket. The process sends `ready` when it has imported the modules of a node.
Then it receives one message for each node: the arguments as JSON, with two file descriptors, which
become the node's standard input and its output. The answer is the pid. The process exits when its
standard input is closed. BLANKS is never read: it reserves memory for the nodes' command lines.
"""

from __future__ import annotations

import gc
import importlib
import json
import os
import socket
import sys
from typing import Final

from bridgehead.application import module_command
from node.run.command_line import set_command_line

_MESSAGE_BYTES_MAX: Final = 1 << 16
_PID_BYTES_MAX: Final = 16


def main() -> int:
    """Fork nodes until the input ends. In a forked process, run the node; return its exit code."""
    preload()
    return fork_nodes(socket.socket(fileno=os.dup(sys.stdin.fileno())))


def preload() -> None:
    """Import the modules of a node for the processes that will be forked."""
    gc.disable()  # Imports leave little garbage (2 %); looking for it takes a tenth of their time.
    importlib.import_module("node.__main__")
    importlib.import_module("controller.apis").import_api_classes()
    gc.freeze()  # Otherwise the forked processes' collectors would write to the shared objects.
    gc.enable()


def fork_nodes(control: socket.socket) -> int:
    """Do what `main` does after the imports, with the socket `control`."""
    from node.__main__ import main as run_node

    set_command_line(module_command("node.run.fork_server"))
    control.send(b"ready")
    arguments = _next_arguments(control)
    if arguments is None:
        return 0
    set_command_line(module_command("node", *arguments))
    return run_node(arguments)


def _next_arguments(control: socket.socket) -> list[str] | None:
    """Fork for each message. Return its arguments in the forked process; None at the end."""
    while True:
        message, descriptors, _, _ = socket.recv_fds(control, _MESSAGE_BYTES_MAX, 2)
        if not message:
            return None
        pid = _fork_orphan()
        if pid == 0:
            control.close()
            os.setsid()
            stdin, output = descriptors
            for ours, standard in ((stdin, 0), (output, 1), (output, 2)):
                os.dup2(ours, standard)
        for descriptor in descriptors:
            os.close(descriptor)
        if pid == 0:
            arguments: list[str] = json.loads(message)
            return arguments
        control.send(b"%d" % pid)


def _fork_orphan() -> int:
    """Fork a process whose parent has exited; return its pid, or 0 in the process itself."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        orphan = os.fork()
        if orphan != 0:
            os.write(writer, b"%d" % orphan)
            os._exit(0)
    else:
        os.waitpid(child, 0)
        orphan = int(os.read(reader, _PID_BYTES_MAX))
    os.close(reader)
    os.close(writer)
    return orphan


if __name__ == "__main__":
    sys.exit(main())
