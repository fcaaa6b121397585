"""Start, find, steer and stop a cluster of node processes; the embedded ZooKeeper.

`Cluster` is the public face, `ClientHistory` is what a workload writes down. Nodes import
`control_socket` from here, so this file stays light.
"""

from __future__ import annotations

from bridgehead.cluster.client_history import ClientHistory
from bridgehead.cluster.cluster import Broker, Cluster
from bridgehead.cluster.errors import ClusterError
from bridgehead.cluster.settings import RunSettings

__all__ = ["Broker", "ClientHistory", "Cluster", "ClusterError", "RunSettings"]
