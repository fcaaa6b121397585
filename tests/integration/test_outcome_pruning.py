"""The controller deletes an outcome as soon as no broker can need it."""

from __future__ import annotations

from tests.integration.admin_clients import ConfluentAdmin
from tests.integration.conftest import StartCluster
from tests.integration.processes import wait_until
from tests.integration.zookeeper_peers import kazoo_client


def test_outcomes_of_finished_requests_are_deleted(start_cluster: StartCluster) -> None:
    """The outcomes of requests to the controller's own broker are deleted, too."""
    properties = {"bridgehead.metadata.controller.id": "self"}
    cluster = start_cluster(brokers=2, controller=1, properties=properties)
    with kazoo_client(cluster.zookeeper_connect) as zookeeper:
        for broker in (1, 2):
            admin = ConfluentAdmin(cluster.bootstrap_server(broker))
            for number in range(3):
                admin.create(f"by-{broker}-{number}", 1, 1, {})
            admin.close()
        wait_until(lambda: not zookeeper.get_children("/bridgehead/outcomes"))
        floors = zookeeper.get_children("/bridgehead/floors")
        assert sorted(name.partition("-")[0] for name in floors) == ["1", "2"]
