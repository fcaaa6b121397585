"""Clusters in containers for test suites, based on testcontainers.

    with BridgeheadContainer() as bridgehead:            # all in one container
        client = MyClient(bridgehead.get_bootstrap_server())

    with BridgeheadCluster().with_brokers(3) as cluster:  # a container for each node
        cluster.kill_controller()

Requires the extra `testing`, a container engine and the images (`make image`, or
`make image-offline` without access to a registry). Without an engine use
`bridgehead.cluster.Cluster`, which runs processes.
"""

from bridgehead.testing.cluster import BridgeheadCluster
from bridgehead.testing.container import BridgeheadContainer

__all__ = ["BridgeheadCluster", "BridgeheadContainer"]
