"""A cluster that is stopping starts no more nodes."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from bridgehead.cluster.errors import ClusterError
from bridgehead.cluster.fork_server import ForkedProcess, ForkServer
from bridgehead.cluster.node_plan import NodePlan
from bridgehead.cluster.node_process import NodeProcess, node_environment
from bridgehead.cluster.reset import reset
from bridgehead.cluster.running_cluster import RunningCluster


def test_no_node_starts_while_the_cluster_is_stopping() -> None:
    """A new node would change evidence that is being sealed, and nothing would stop the node."""
    started: list[str] = []
    node: Any = SimpleNamespace(start=lambda: started.append("node"))
    cluster: Any = SimpleNamespace(phase="ready")
    RunningCluster.start_process(cluster, node)
    cluster.phase = "stopping"
    with pytest.raises(ClusterError, match="The cluster is stopping"):
        RunningCluster.start_process(cluster, node)
    assert started == ["node"]


# Clusters that cannot be reset.


@pytest.mark.parametrize(
    ("properties", "node_properties"),
    [
        ({"delegation.token.secret.key": "s"}, {}),
        ({}, {2: {"delegation.token.master.key": "s"}}),
    ],
)
async def test_a_cluster_that_may_have_tokens_is_not_reset(
    properties: dict[str, str], node_properties: dict[int, dict[str, str]]
) -> None:
    settings = SimpleNamespace(properties=properties, node_properties=node_properties)
    cluster: Any = SimpleNamespace(settings=settings, was_upgraded=False)
    with pytest.raises(ClusterError, match="Delegation tokens cannot be removed"):
        await reset(cluster)


# Nodes start even if the fork server has exited.


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
