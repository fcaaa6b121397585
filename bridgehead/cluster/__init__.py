"""Start, control and stop a cluster of node processes and the embedded ZooKeeper.

The class for this is `Cluster`. A workload records its operations with `ClientHistory`, so that the
judge can check them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from bridgehead.lazy_imports import imported_when_used

if TYPE_CHECKING:
    from bridgehead.cluster.client_history import ClientHistory
    from bridgehead.cluster.cluster import AsyncCluster, Broker, Cluster
    from bridgehead.cluster.errors import ClusterError
    from bridgehead.cluster.settings import RunSettings

__all__ = ["AsyncCluster", "Broker", "ClientHistory", "Cluster", "ClusterError", "RunSettings"]
# Nodes and supervisors import this package, too.
__getattr__ = imported_when_used(
    __name__,
    {
        **dict.fromkeys(("AsyncCluster", "Broker", "Cluster"), "bridgehead.cluster.cluster"),
        "ClientHistory": "bridgehead.cluster.client_history",
        "ClusterError": "bridgehead.cluster.errors",
        "RunSettings": "bridgehead.cluster.settings",
    },
)
