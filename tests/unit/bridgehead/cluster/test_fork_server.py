"""Nodes start even if the fork server has exited."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from bridgehead.cluster.fork_server import ForkedProcess, ForkServer
from bridgehead.cluster.node_plan import NodePlan
from bridgehead.cluster.node_process import NodeProcess, node_environment


@pytest.mark.skipif(sys.platform != "linux", reason="nodes are forked only on Linux")
def test_a_node_starts_in_a_new_interpreter_if_the_fork_server_has_exited(tmp_path: Path) -> None:
    server = ForkServer.start(tmp_path, node_environment())
    server.wait_until_ready()
    server.close()
    node = NodeProcess(NodePlan(1, {}), tmp_path / "1", (sys.executable, "-c", "exit(7)"))
    node.start(server)
    node.stop()
    assert node.exit_status() in (7, -signal.SIGTERM)


def test_a_forked_process_has_the_methods_of_popen() -> None:
    """The exit status has the form that `subprocess` uses. An ended process gets no signal."""
    reader, writer = os.pipe()
    pid = os.posix_spawn(
        "/bin/sh", ["sh", "-c", "read x"], {}, file_actions=[(os.POSIX_SPAWN_DUP2, reader, 0)]
    )
    os.close(reader)
    process = ForkedProcess(pid, os.fdopen(writer, "wb"))
    assert process.poll() is None
    with pytest.raises(subprocess.TimeoutExpired):
        process.wait(0.05)
    process.send_signal(signal.SIGKILL)
    assert process.wait() == -signal.SIGKILL
    assert process.poll() == -signal.SIGKILL
    process.send_signal(signal.SIGKILL)
    assert process.stdin is not None
    process.stdin.close()
