"""Clusters in containers for test suites, in testcontainers' manner.

    with BridgeheadContainer() as bridgehead:            # all in one container
        client = MyClient(bridgehead.get_bootstrap_server())

    with BridgeheadCluster().with_brokers(3) as cluster:  # a container for each node
        cluster.kill_controller()

Read first: `pip install 'bridgehead[testing]'`, an engine, and the images (`make image`, or
`make image-offline` where no registry is reachable). Without an engine `bridgehead.cluster.Cluster`
does the same with processes.
"""

from bridgehead.testing.cluster import BridgeheadCluster
from bridgehead.testing.container import BridgeheadContainer

__all__ = ["BridgeheadCluster", "BridgeheadContainer"]
