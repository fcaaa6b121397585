"""Start, control and stop a cluster of node processes and the embedded ZooKeeper.

The class for this is `Cluster`. A workload records its operations with `ClientHistory`, so that the
judge can check them.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from bridgehead.cluster.client_history import ClientHistory
    from bridgehead.cluster.cluster import AsyncCluster, Broker, Cluster
    from bridgehead.cluster.errors import ClusterError
    from bridgehead.cluster.settings import RunSettings

__all__ = ["AsyncCluster", "Broker", "ClientHistory", "Cluster", "ClusterError", "RunSettings"]
_MODULES = {
    **dict.fromkeys(("AsyncCluster", "Broker", "Cluster"), "cluster"),
    "ClientHistory": "client_history",
    "ClusterError": "errors",
    "RunSettings": "settings",
}


def __getattr__(name: str) -> Any:
    """Import a class when it is first used: nodes and supervisors import this package, too."""
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"{__name__}.{_MODULES[name]}"), name)
