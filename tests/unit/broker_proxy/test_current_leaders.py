"""Produce and Fetch responses name the leader of a partition that has moved (KIP-951)."""

from __future__ import annotations

from bridgehead.kafka_wire.messages.produce import LeaderIdAndEpoch, NodeEndpoint
from broker_proxy.apis.records.current_leaders import Moved, name_leaders
from tests.unit.broker_proxy.coordinating_broker import CoordinatingBroker


def test_moved_partitions_get_their_leader_and_each_leader_is_listed_once() -> None:
    broker = CoordinatingBroker()
    broker.create("t", (2,), (2,), (3,))
    fields = [LeaderIdAndEpoch() for _ in range(4)]
    moved = [Moved("t", number, field) for number, field in enumerate(fields)]
    endpoints = name_leaders(broker.cache, "INNER", moved, NodeEndpoint)
    assert [field.leader_id for field in fields] == [2, 2, 3, -1]
    assert fields[0].leader_epoch == broker.cache.topics["t"].partitions[0].leader_epoch
    assert endpoints == [NodeEndpoint(2, "host2", 9002, None)]  # Broker 3 has no listener INNER.
