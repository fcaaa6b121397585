"""The partition leader evaluates the topic policy before it deletes records."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from typing import Any

import pytest

from bridgehead.kafka_wire.errors import ApiError, ErrorCode
from bridgehead.kafka_wire.messages.delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsTopic,
)
from bridgehead.policy import ClusterState, KafkaPrincipal, TopicState
from broker_proxy.apis.base import ClientRequest
from broker_proxy.apis.delete_records import DeleteRecords
from broker_proxy.apis.records_policy import RecordsPolicy
from cluster_model.broker_configs import EffectiveBrokerConfig
from cluster_model.principal import KafkaPrincipal as Principal
from tests.unit.broker_proxy.client_requests import a_request
from tests.unit.broker_proxy.coordinating_broker import CoordinatingBroker
from tests.unit.controller.topic_decisions import config


def allow_all(_request: ClientRequest) -> Callable[..., bool]:
    return lambda *_: True


TOPICS = ("t", "gone", "__consumer_offsets")


class Cluster:
    """Broker 1 leads partition 0 of every topic, broker 2 partition 1; `gone` is being deleted."""

    def __init__(self) -> None:
        self.requested: list[Any] = []
        self.seen: Any = None
        self.refusal: ApiError | None = None
        broker = CoordinatingBroker()
        for name in TOPICS:
            broker.create(name, (1, 2), (2, 3), topic_id=name.encode()[:16].ljust(16))
        self.cache = broker.cache

    async def check_record_deletion(self, request: Any, cluster: ClusterState) -> ApiError | None:
        self.requested.append(request)
        self.seen = await asyncio.to_thread(self.look, cluster)
        return self.refusal

    def look(self, cluster: ClusterState) -> Any:
        """Query the cluster in a thread, as policies do."""
        return (
            cluster.topic_state("t"),
            cluster.topic_state("nothing"),
            {(i, m): cluster.topics(i, m) for i in (False, True) for m in (False, True)},
            cluster.cluster_size(),
        )

    async def read_config(
        self, entity_type: str, entity_name: str, invalid: list[str] | None = None
    ) -> Mapping[str, str]:
        return {"flush.ms": "7"} if entity_name == "t" else {}

    async def read_deletions(self) -> frozenset[str]:
        return frozenset({"gone"})

    async def delete(self, topic: str, offsets: Mapping[int, int]) -> dict[int, tuple[int, int]]:
        """Return code and low watermark of each partition."""
        effective = EffectiveBrokerConfig.of(config())
        policy = RecordsPolicy(self, self.cache, self)
        api = DeleteRecords(1, self.cache, lambda: effective, self, allow_all, policy)
        alice = Principal("User", "alice")
        request = a_request(21, 2, principal=alice)
        partitions = [DeleteRecordsPartition(p, offset) for p, offset in offsets.items()]
        message = DeleteRecordsRequest([DeleteRecordsTopic(topic, partitions)], 1000)
        answer = await api.handle(request, message)
        return {
            row.partition_index: (row.error_code, row.low_watermark)
            for row in answer.topics[0].partitions
        }


async def test_the_policy_gets_principal_and_offsets_of_valid_partitions() -> None:
    cluster = Cluster()
    assert await cluster.delete("t", {0: -1, 1: 0, 2: 0}) == {0: (0, 0), 1: (6, -1), 2: (3, -1)}
    (requested,) = cluster.requested
    assert (requested.topic, requested.principal) == ("t", KafkaPrincipal("User", "alice"))
    assert requested.deleted_message_offsets == {0: -1}


async def test_the_policy_sees_the_brokers_view_of_the_cluster() -> None:
    cluster = Cluster()
    await cluster.delete("t", {0: 0})
    state, nothing, names, size = cluster.seen
    assert state == TopicState(2, 2, {0: (1, 2), 1: (2, 3)}, {"flush.ms": "7"}, False, False)
    assert nothing is None
    assert size == 3
    assert names == {
        (False, False): {"t"},
        (False, True): {"t", "gone"},
        (True, False): {"t", "__consumer_offsets"},
        (True, True): {"t", "gone", "__consumer_offsets"},
    }


@pytest.mark.parametrize(
    "error", [ErrorCode.POLICY_VIOLATION, ErrorCode.UNKNOWN_SERVER_ERROR], ids=lambda e: e.name
)
async def test_a_violation_keeps_the_records(error: ErrorCode) -> None:
    cluster = Cluster()
    cluster.refusal = ApiError(error, "no")
    assert await cluster.delete("t", {0: 0, 1: 0}) == {0: (error, -1), 1: (6, -1)}


async def test_the_policy_does_not_see_invalid_partitions() -> None:
    cluster = Cluster()
    await cluster.delete("__consumer_offsets", {0: 0})
    await cluster.delete("t", {1: 0})
    await cluster.delete("t", {0: 5})
    assert cluster.requested == []
