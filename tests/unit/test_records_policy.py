"""The leader of a partition asks the topic policy before records are deleted."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from typing import Any

import pytest
from immutables import Map

from bridgehead.kafka_wire.codec import encode_request
from bridgehead.kafka_wire.errors import ApiError, ErrorCode
from bridgehead.kafka_wire.headers import RequestHeader
from bridgehead.kafka_wire.messages.delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsTopic,
)
from bridgehead.policy import ClusterState, KafkaPrincipal, TopicState
from broker_proxy.apis.base import ClientConnectionInfo, ClientRequest
from broker_proxy.apis.delete_records import DeleteRecords
from broker_proxy.apis.records_policy import RecordsPolicy
from broker_proxy.metadata_cache import MetadataCache
from cluster_model.broker_configs import EffectiveBrokerConfig
from cluster_model.elections import elect_new
from cluster_model.image import BrokerRegistration, MetadataImage
from cluster_model.principal import KafkaPrincipal as Principal
from cluster_model.records import PartitionRecord, TopicRecord
from cluster_model.update_metadata import full_parts
from envelope.messages import MetadataUpdate
from tests.unit.topic_decisions import config


def allow_all(_request: ClientRequest) -> Callable[..., bool]:
    return lambda *_: True


TOPICS = ("t", "gone", "__consumer_offsets")


class Cluster:
    """Broker 1 leads partition 0 of every topic, broker 2 partition 1; `gone` is being deleted."""

    def __init__(self) -> None:
        self.asked: list[Any] = []
        self.seen: Any = None
        self.refusal: ApiError | None = None
        image = MetadataImage(
            zxid=1,
            controller_epoch=1,
            brokers=Map({i: BrokerRegistration(i, i, ()) for i in (1, 2, 3)}),
        )
        for number, name in enumerate(TOPICS, start=1):
            assignment = ((1, 2), (2, 3))
            image = image.replay([TopicRecord(name, bytes([number]) * 16, assignment, {})])
            for partition, replicas in enumerate(assignment):
                state = elect_new(replicas, image.brokers, 1)
                assert state is not None
                image = image.replay([PartitionRecord(name, partition, state)])
        self.cache = MetadataCache(lambda: None)
        parts = list(full_parts(image, 1))
        for count, part in enumerate(parts):
            body, last = encode_request(6, 8, part), count == len(parts) - 1
            self.cache.apply(MetadataUpdate(1, 1, image.zxid, body, count == 0, last))

    async def ask_about_records(self, request: Any, cluster: ClusterState) -> ApiError | None:
        self.asked.append(request)
        self.seen = await asyncio.to_thread(self.look, cluster)
        return self.refusal

    def look(self, cluster: ClusterState) -> Any:
        """In a thread, as policies do."""
        return (
            cluster.topic_state("t"),
            cluster.topic_state("nothing"),
            {(i, m): cluster.topics(i, m) for i in (False, True) for m in (False, True)},
            cluster.cluster_size(),
        )

    async def read_config(self, entity_type: str, entity_name: str) -> Mapping[str, str]:
        return {"flush.ms": "7"} if entity_name == "t" else {}

    async def read_deletions(self) -> frozenset[str]:
        return frozenset({"gone"})

    async def delete(self, topic: str, offsets: Mapping[int, int]) -> dict[int, tuple[int, int]]:
        """Return code and low watermark of each partition."""
        effective = EffectiveBrokerConfig.of(config())
        policy = RecordsPolicy(self, self.cache, self)
        api = DeleteRecords(1, self.cache, lambda: effective, self, allow_all, policy)
        alice = Principal("User", "alice")
        connection = ClientConnectionInfo(
            "c", "L", "PLAINTEXT", "shipped", "127.0.0.1", bytes(4), alice
        )
        request = ClientRequest("r", RequestHeader(21, 2, 1, None), b"", b"", connection, 0)
        partitions = [DeleteRecordsPartition(p, offset) for p, offset in offsets.items()]
        message = DeleteRecordsRequest([DeleteRecordsTopic(topic, partitions)], 1000)
        answer = await api.answer(request, message)
        return {
            row.partition_index: (row.error_code, row.low_watermark)
            for row in answer.topics[0].partitions
        }


async def test_the_policy_is_given_who_asks_and_the_requested_offsets() -> None:
    """Only of partitions that the asked broker leads, and that nothing else speaks against."""
    cluster = Cluster()
    assert await cluster.delete("t", {0: -1, 1: 0, 2: 0}) == {0: (0, 0), 1: (6, -1), 2: (3, -1)}
    (asked,) = cluster.asked
    assert (asked.topic, asked.principal) == ("t", KafkaPrincipal("User", "alice"))
    assert asked.deleted_message_offsets == {0: -1}


async def test_the_policy_sees_the_cluster_as_the_broker_does() -> None:
    """Configs and deletions come from ZooKeeper, the rest from the metadata cache."""
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
async def test_what_the_policy_refuses_keeps_its_records(error: ErrorCode) -> None:
    """The other errors stay what they are."""
    cluster = Cluster()
    cluster.refusal = ApiError(error, "no")
    assert await cluster.delete("t", {0: 0, 1: 0}) == {0: (error, -1), 1: (6, -1)}


async def test_what_is_refused_anyway_is_not_shown_to_the_policy() -> None:
    """An internal topic, a partition led elsewhere, an offset out of range."""
    cluster = Cluster()
    await cluster.delete("__consumer_offsets", {0: 0})
    await cluster.delete("t", {1: 0})
    await cluster.delete("t", {0: 5})
    assert cluster.asked == []
