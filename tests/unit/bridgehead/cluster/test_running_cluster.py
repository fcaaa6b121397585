"""A cluster that is stopping starts no more nodes."""

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
