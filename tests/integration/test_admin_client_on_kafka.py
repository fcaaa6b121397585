"""Every method of `bridgehead.admin` against a live Kafka 3.9.1 that forwards.

`make fidelity LIVE=1` runs these tests. They expect the same results as test_every_admin_method.py,
except that Kafka serves more APIs (docs/apis.md).
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from bridgehead.cluster.zookeeper import EmbeddedZooKeeper
from bridgehead.kafka_wire.apis import API_SPECS
from tests.fidelity.real_kafka import kafka_brokers, reason_to_skip
from tests.integration.client_methods.ours import Ours, OursAsync
from tests.integration.test_every_admin_method import FEW, public

BROKERS = (1, 2, 3)
pytestmark = [pytest.mark.kafka, pytest.mark.live]


CLIENTS = (Ours, OursAsync)


@pytest.fixture(scope="module")
def connected(
    tmp_path_factory: pytest.TempPathFactory, zookeeper_server: EmbeddedZooKeeper
) -> Iterator[dict[type[Ours], Ours]]:
    """Bridgehead's two clients, connected to three brokers; broker 1 is the controller."""
    if reason := reason_to_skip():
        pytest.skip(reason)
    folder = tmp_path_factory.mktemp("kafka")
    dirs = {
        broker: (str(folder / f"logs-{broker}-a"), str(folder / f"logs-{broker}-b"))
        for broker in BROKERS
    }
    with kafka_brokers(
        folder,
        f"{zookeeper_server.connect}/methods-on-kafka",
        BROKERS,
        forwarding=True,
        one_by_one=True,
        properties=FEW,
        node_properties={broker: {"log.dirs": ",".join(dirs[broker])} for broker in BROKERS},
    ) as servers:
        clients = {kind: kind(servers) for kind in CLIENTS}
        for client in clients.values():
            client.apis = frozenset(API_SPECS)
        yield clients
        for client in clients.values():
            client.end()


@pytest.mark.parametrize("client", CLIENTS)
@pytest.mark.parametrize("name", sorted(public(Ours.CLIENT) - set(Ours.OUT_OF_SCOPE)))
def test_method_works_on_a_live_kafka(
    connected: dict[type[Ours], Ours], client: type[Ours], name: str
) -> None:
    getattr(connected[client], name)()
