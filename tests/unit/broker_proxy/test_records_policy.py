"""The partition leader evaluates the topic policy before it deletes records."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import pytest
from immutables import Map

from bridgehead.kafka_wire.errors import ApiError, ErrorCode
from bridgehead.kafka_wire.messages.delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsTopic,
)
from bridgehead.kafka_wire.messages.drafted import delete_records as drafted
from bridgehead.policy import ClusterState, KafkaPrincipal, TopicState
from broker_proxy.apis.records.delete_records import DeleteRecords, EmptyLogs
from broker_proxy.apis.records.records_policy import RecordsPolicy
from broker_proxy.client_request import ClientRequest
from cluster_model.configs.broker_configs import EffectiveBrokerConfig
from cluster_model.image import MetadataImage, Topic
from cluster_model.principal import ANONYMOUS
from cluster_model.principal import KafkaPrincipal as Principal
from cluster_model.records import ConfigResource
from controller.apis.policy_check import ImageClusterState
from tests.unit.broker_proxy.client_requests import a_request
from tests.unit.broker_proxy.coordinating_broker import CoordinatingBroker
from tests.unit.controller.topic_decisions import config


def allow_all(_request: ClientRequest) -> Callable[..., bool]:
    return lambda *_: True


TOPICS = ("t", "gone", "__consumer_offsets")
ALICE = Principal("User", "alice")


class Cluster:
    """Brokers 1 and 2 lead partitions 0 and 1 of each topic. The topic `gone` is being deleted.

    `second` has the replicas of partition 1.
    """

    def __init__(self, second: tuple[int, ...] = (2, 3)) -> None:
        self.requested: list[Any] = []
        self.seen: Any = None
        self.rejection: ApiError | None = None
        broker = CoordinatingBroker()
        for name in TOPICS:
            broker.create(name, (1, 2), second, topic_id=name.encode()[:16].ljust(16))
        self.cache = broker.cache
        self.stored = {name: Topic(name, b"", ((1, 2), second), ()) for name in TOPICS}

    async def check_record_deletion(self, request: Any, cluster: ClusterState) -> ApiError | None:
        self.requested.append(request)
        self.seen = await asyncio.to_thread(self.look, cluster)
        return self.rejection

    def look(self, cluster: ClusterState) -> Any:
        """Query the cluster as a policy does. This runs in a thread."""
        return (
            cluster.topic_state("t"),
            cluster.topic_state("nothing"),
            {(i, m): cluster.topics(i, m) for i in (False, True) for m in (False, True)},
            cluster.cluster_size(),
            cluster.topic_state("gone"),
            cluster.topic_state("__consumer_offsets"),
        )

    async def read_config(
        self, entity_type: str, entity_name: str, invalid: list[str] | None = None
    ) -> Mapping[str, str]:
        return {"flush.ms": "7"} if entity_name == "t" else {}

    async def read_deletions(self) -> frozenset[str]:
        return frozenset({"gone"})

    async def read_topic(self, name: str) -> Topic | None:
        return self.stored.get(name)

    async def read_topic_names(self) -> frozenset[str]:
        return frozenset(self.stored)

    async def delete(
        self,
        topic: str,
        offsets: Mapping[int, int],
        principal: Principal = ALICE,
        logs: EmptyLogs | None = None,
        *,
        dialect: str = "shipped",
        version: int = 2,
    ) -> dict[int, tuple[int, int]]:
        """Return the error code and the low watermark of each partition."""
        effective = EffectiveBrokerConfig.of(config())
        policy = RecordsPolicy(self, self.cache, self)
        api = DeleteRecords(
            1, self.cache, lambda: effective, self, allow_all, policy, logs or EmptyLogs()
        )
        request = a_request(21, version, principal=principal, dialect=dialect)
        partitions = [DeleteRecordsPartition(p, offset) for p, offset in offsets.items()]
        message = DeleteRecordsRequest([DeleteRecordsTopic(topic, partitions)], 1000)
        response = await api.handle(request, message)
        return {
            row.partition_index: (row.error_code, row.low_watermark)
            for row in response.topics[0].partitions
        }


async def test_the_policy_gets_principal_and_offsets_of_valid_partitions() -> None:
    cluster = Cluster()
    assert await cluster.delete("t", {0: -1, 1: 0, 2: 0}) == {0: (0, 0), 1: (6, -1), 2: (3, -1)}
    (requested,) = cluster.requested
    assert (requested.topic, requested.principal) == ("t", KafkaPrincipal("User", "alice"))
    assert requested.deleted_message_offsets == {}, "the log is empty"


async def test_the_policy_gets_only_partitions_that_lose_records() -> None:
    """KIP-201 deletedMessageOffsets. Offset -1 means the high watermark.

    The policy is called even if no partition loses records.
    """
    cluster, logs = Cluster(second=(1, 3)), Logs()
    wanted = {0: -1, 1: 4, 2: 4}
    assert await cluster.delete("t", wanted, logs=logs) == {0: (0, 9), 1: (0, 4), 2: (3, -1)}
    assert await cluster.delete("t", {0: 3, 1: 5}, logs=logs) == {0: (0, 3), 1: (0, 5)}
    assert await cluster.delete("t", {0: 10, 1: 10}, logs=logs) == {0: (1, -1), 1: (1, -1)}
    assert await cluster.delete("t", {0: 0, 1: 3}, logs=logs) == {0: (0, 0), 1: (0, 3)}
    seen = [request.deleted_message_offsets for request in cluster.requested]
    assert seen == [{0: 9, 1: 4}, {1: 5}, {}]


async def test_the_policy_gets_no_principal_of_an_unauthenticated_client() -> None:
    cluster = Cluster()
    await cluster.delete("t", {0: 0}, ANONYMOUS)
    assert [request.principal for request in cluster.requested] == [None]


async def test_the_policy_sees_the_brokers_view_of_the_cluster() -> None:
    cluster = Cluster()
    await cluster.delete("t", {0: 0})
    state, nothing, names, size, gone, offsets = cluster.seen
    assignment = {0: (1, 2), 1: (2, 3)}
    assert gone == TopicState(2, 2, assignment, {}, True, False)
    assert offsets == TopicState(2, 2, assignment, {}, False, True)
    assert state == TopicState(2, 2, {0: (1, 2), 1: (2, 3)}, {"flush.ms": "7"}, False, False)
    assert nothing is None
    assert size == 3
    assert names == {
        (False, False): {"t"},
        (False, True): {"t", "gone"},
        (True, False): {"t", "__consumer_offsets"},
        (True, True): {"t", "gone", "__consumer_offsets"},
    }


async def test_the_leader_and_the_controller_show_a_policy_the_same_topic() -> None:
    """During a reassignment both show the target replicas. KIP-201 does not say which to show."""
    cluster = Cluster()
    moving = replace(cluster.stored["t"], assignment=((3, 1, 2), (2, 3)), adding={0: (3,)})
    cluster.stored["t"] = replace(moving, removing={0: (1, 2)})
    await cluster.delete("t", {0: 0})
    image = MetadataImage(
        topics=Map(cluster.stored),
        configs=Map({ConfigResource("topics", "t"): await cluster.read_config("topics", "t")}),
    )
    assert cluster.seen[0] == ImageClusterState(image).topic_state("t")
    assert cluster.seen[0].replicas_assignments == {0: (3,), 1: (2, 3)}


@pytest.mark.parametrize(
    "error", [ErrorCode.POLICY_VIOLATION, ErrorCode.UNKNOWN_SERVER_ERROR], ids=lambda e: e.name
)
async def test_an_error_of_the_policy_is_the_partitions_error(error: ErrorCode) -> None:
    cluster = Cluster()
    cluster.rejection = ApiError(error, "no")
    assert await cluster.delete("t", {0: 0, 1: 0}) == {0: (error, -1), 1: (6, -1)}


@pytest.mark.parametrize(
    ("dialect", "version", "rejection", "expected"),
    [
        ("drafted", 0, ErrorCode.POLICY_VIOLATION, ErrorCode.UNKNOWN_SERVER_ERROR),
        ("drafted", 0, ErrorCode.INVALID_REQUEST, ErrorCode.INVALID_REQUEST),
        ("drafted", 1, ErrorCode.POLICY_VIOLATION, ErrorCode.POLICY_VIOLATION),
        ("shipped", 0, ErrorCode.POLICY_VIOLATION, ErrorCode.POLICY_VIOLATION),
    ],
)
async def test_kip_201s_version_0_has_no_error_code_for_a_policy_so_the_log_has_its_text(
    dialect: str,
    version: int,
    rejection: ErrorCode,
    expected: ErrorCode,
    caplog: pytest.LogCaptureFixture,
) -> None:
    cluster = Cluster()
    cluster.rejection = ApiError(rejection, "t is kept for a year")
    with caplog.at_level("INFO"):
        rows = await cluster.delete("t", {0: 0, 1: 0}, dialect=dialect, version=version)
    assert rows == {0: (expected, -1), 1: (6, -1)}
    assert ("t is kept for a year" in caplog.text) is (expected is ErrorCode.UNKNOWN_SERVER_ERROR)


async def test_the_policy_does_not_see_invalid_partitions() -> None:
    cluster = Cluster()
    await cluster.delete("__consumer_offsets", {0: 0})
    await cluster.delete("t", {1: 0})
    await cluster.delete("t", {0: 5})
    assert cluster.requested == []


class Logs(EmptyLogs):
    """Each partition has the low watermark 3 and the high watermark 9."""

    def __init__(self) -> None:
        self.deleted: list[int] = []

    def high_watermark(self, _topic: str, _partition: int) -> int:
        return 9

    def log_start_offset(self, _topic: str, _partition: int) -> int:
        return 3

    def low_watermark(self, _topic: str, _partition: int) -> int:
        return 3

    async def delete_before(
        self, _topic: str, _partition: int, offset: int, _timeout_s: float
    ) -> int:
        self.deleted.append(offset)
        return offset


@pytest.mark.parametrize(
    ("validate_only", "watermark", "deleted"), [(True, 3, []), (False, 7, [7])]
)
async def test_validate_only_calls_the_policy_and_keeps_the_records(
    validate_only: bool, watermark: int, deleted: list[int]
) -> None:
    """KIP-201 adds validate_only to DeleteRecords from v1 on."""
    cluster, logs = Cluster(), Logs()
    effective = EffectiveBrokerConfig.of(config())
    policy = RecordsPolicy(cluster, cluster.cache, cluster)
    api = DeleteRecords(1, cluster.cache, lambda: effective, cluster, allow_all, policy, logs)
    topics = [DeleteRecordsTopic("t", [DeleteRecordsPartition(0, 7)])]
    message = drafted.DeleteRecordsRequest(topics, 1000, validate_only)
    response = await api.handle(a_request(21, 1), message)
    (row,) = response.topics[0].partitions
    assert (row.error_code, row.low_watermark, logs.deleted) == (0, watermark, deleted)
    assert [request.deleted_message_offsets for request in cluster.requested] == [{0: 7}]


class WaitingLogs(Logs):
    """Every deletion waits until two are under way."""

    def __init__(self) -> None:
        super().__init__()
        self.both = asyncio.Event()

    async def delete_before(self, topic: str, partition: int, offset: int, timeout_s: float) -> int:
        await super().delete_before(topic, partition, offset, timeout_s)
        if len(self.deleted) == 2:
            self.both.set()
        async with asyncio.timeout(timeout_s):
            await self.both.wait()
        return offset


async def test_all_partitions_wait_for_their_replicas_at_the_same_time() -> None:
    """A follower's next fetch may come 500 ms later, so two partitions in turn could take 1 s."""
    cluster, logs = Cluster(), WaitingLogs()
    effective = EffectiveBrokerConfig.of(config())
    api = DeleteRecords(1, cluster.cache, lambda: effective, cluster, allow_all, None, logs)
    topics = [DeleteRecordsTopic(name, [DeleteRecordsPartition(0, 7)]) for name in ("t", "gone")]
    response = await api.handle(a_request(21, 2), DeleteRecordsRequest(topics, 1000))
    rows = [
        (row.error_code, row.low_watermark) for topic in response.topics for row in topic.partitions
    ]
    assert rows == [(0, 7), (0, 7)]
