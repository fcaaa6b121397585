"""When a cluster is ready, and what it rejects while it stops."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from bridgehead.cluster.errors import ClusterError
from bridgehead.cluster.fork_server import ForkedProcess, ForkServer
from bridgehead.cluster.node_plan import NodePlan
from bridgehead.cluster.node_process import NodeProcess
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


async def test_an_upgraded_cluster_is_not_reset() -> None:
    cluster: Any = SimpleNamespace(
        settings=SimpleNamespace(properties={}, node_properties={}), was_upgraded=True
    )
    with pytest.raises(ClusterError, match="An upgrade cannot be undone: start a new cluster"):
        await reset(cluster)


# The addresses of a node.

SERVING = """
import json, os, sys
from pathlib import Path
folder = Path(sys.argv[4])
listeners = {"CLIENT": (folder / "bound").read_text(), "INTERNAL": "10.0.0.9:7"}
ready = {"pid": os.getpid(), "listeners": listeners, "metrics_url": "http://10.0.0.9:8/metrics"}
(folder / "new").write_text(json.dumps(ready))
(folder / "new").rename(folder / "ready.json")
sys.stdin.read()
"""


def test_addresses_are_those_that_the_node_advertises_in_its_latest_life(tmp_path: Path) -> None:
    plan = NodePlan(4, {"advertised.listeners": "CLIENT://kafka.example:0"})
    node = NodeProcess(plan, tmp_path, (sys.executable, "-c", SERVING))
    assert (node.is_ready(), node.addresses["listeners"]) == (False, {})
    for port in ("17001", "17002"):
        (tmp_path / "bound").write_text(f"0.0.0.0:{port}")
        node.start()
        while not node.is_ready():
            time.sleep(0.01)
        (tmp_path / "ready.json").write_text("{}")  # It is read once in each life.
        assert node.is_ready()
        node.stop()
        assert node.addresses == {
            "listeners": {"CLIENT": f"kafka.example:{port}", "INTERNAL": "10.0.0.9:7"},
            "metrics_url": "http://10.0.0.9:8/metrics",
        }
    with pytest.raises(ClusterError, match="Broker 4 did not start"):
        node.is_ready()


# Nodes start even if the fork server has exited.


@pytest.mark.skipif(sys.platform != "linux", reason="nodes are forked only on Linux")
def test_a_node_starts_in_a_new_interpreter_if_the_fork_server_has_exited(tmp_path: Path) -> None:
    server = ForkServer.start()
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


READY = {
    1: {"controller_id": 2, "brokers": [1, 2]},
    2: {"controller_id": 2, "brokers": [1, 2], "is_controller": True, "id": 2},
}


def with_states(states: dict[int, Any], pinned: int | None = None) -> Any:
    """Return a cluster whose nodes report these states."""
    cluster: Any = SimpleNamespace(nodes=dict.fromkeys(states), pinned=pinned)

    async def node_states() -> dict[int, Any]:
        return states

    cluster.node_states = node_states
    cluster.active_controller = lambda: RunningCluster.active_controller(cluster)
    return cluster


@pytest.mark.parametrize(
    ("changes", "pinned", "is_complete"),
    [
        ({}, None, True),
        ({}, 2, True),
        ({}, 1, False),
        ({1: {"controller_id": 2, "brokers": [1]}}, None, False),
        ({2: {"controller_id": 2, "brokers": [2], "is_controller": True, "id": 2}}, None, False),
        ({1: {"controller_id": None, "brokers": [1, 2]}}, None, False),
        ({1: {"controller_id": 1, "brokers": [1, 2]}}, None, False),
        (
            {2: {"controller_id": 2, "brokers": [1, 2], "is_controller": False, "id": 2}},
            None,
            False,
        ),
        ({1: None}, None, False),
    ],
)
async def test_cluster_is_complete_if_every_node_knows_all_brokers_and_the_controller(
    changes: dict[int, Any], pinned: int | None, is_complete: bool
) -> None:
    """`up` returns only then; see docs/container.md#when-is-a-cluster-ready."""
    cluster = with_states(READY | changes, pinned)
    assert await RunningCluster.is_complete(cluster) is is_complete
