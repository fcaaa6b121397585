"""When a cluster is ready, and what it rejects while it stops."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from bridgehead.cluster.errors import ClusterError
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
