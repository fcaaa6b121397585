"""Start, control and stop a cluster of node processes and the embedded ZooKeeper.

The class for this is `Cluster`. A workload records its operations with `ClientHistory`, so that the
judge can check them.
"""

# Nodes import `control_socket` from this package: keep its imports light.

from __future__ import annotations

from bridgehead.cluster.client_history import ClientHistory
from bridgehead.cluster.cluster import AsyncCluster, Broker, Cluster
from bridgehead.cluster.errors import ClusterError
from bridgehead.cluster.settings import RunSettings

__all__ = ["AsyncCluster", "Broker", "ClientHistory", "Cluster", "ClusterError", "RunSettings"]
