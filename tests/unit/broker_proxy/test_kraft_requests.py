"""The requests of a KRaft controller change replicas and metadata."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from bridgehead.kafka_wire.api_key import ApiKey
from bridgehead.kafka_wire.codec import decode_request, encode_request
from bridgehead.kafka_wire.errors import ErrorCode
from bridgehead.kafka_wire.messages.leader_and_isr import (
    LeaderAndIsrPartitionState,
    LeaderAndIsrRequest,
    LeaderAndIsrResponse,
    LeaderAndIsrTopicState,
)
from bridgehead.kafka_wire.messages.stop_replica import (
    StopReplicaPartitionState,
    StopReplicaRequest,
    StopReplicaTopicState,
)
from bridgehead.kafka_wire.messages.update_metadata import (
    UpdateMetadataBroker,
    UpdateMetadataEndpoint,
    UpdateMetadataPartitionState,
    UpdateMetadataRequest,
    UpdateMetadataTopicState,
)
from bridgehead.kafka_wire.primitives import ELEMENTS_MAX
from broker_proxy.apis.admin.cluster_view import ClusterView
from broker_proxy.apis.migration.kraft_requests import (
    FULL,
    KraftRequests,
    LeaderAndIsr,
    StopReplica,
    UpdateMetadata,
)
from broker_proxy.metadata.cache import MetadataCache
from data_plane.partitions import Partitions
from envelope.messages import MetadataUpdate
from tests.unit.broker_proxy.client_requests import a_request, authorize_by
from tests.unit.data_plane.logs import NOW, TOPIC_ID, directories
from tests.unit.data_plane.replicas import Isrs, append

ME, OTHER = 4, 6
KRAFT: dict[str, Any] = {"controller_id": 3000, "is_kraft_controller": True, "controller_epoch": 8}
OTHER_ID = bytes(range(50, 66))
BROKERS = [
    UpdateMetadataBroker(broker, [UpdateMetadataEndpoint(90 + broker, "h", "INNER", 0)])
    for broker in (ME, OTHER)
]


class Broker:
    """A broker with replicas of orders-0, orders-1 and lines-0, all with the leader epoch 9."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.cache = MetadataCache(self._changed)
        settings: Any = _NoSettings()
        self.partitions = Partitions(ME, directories(folder), settings, lambda: NOW, Isrs())
        allowed = authorize_by(True)
        requests = KraftRequests({"INNER"}, lambda _: allowed, self.cache, lambda: 12)
        self._apis = {
            api.api_key: api
            for api in (
                UpdateMetadata(requests),
                LeaderAndIsr(requests, ME, self.partitions),
                StopReplica(requests, self.partitions),
            )
        }

    def _changed(self) -> None:
        self.partitions.apply(self.cache.topics, self.cache.changed)

    async def send(self, key: ApiKey, version: int, message: Any) -> Any:
        request = a_request(key, version, listener_name="INNER")
        return await self._apis[key].handle(request, message)

    async def update(self, *topics: UpdateMetadataTopicState, kind: int = 1) -> None:
        message = UpdateMetadataRequest(
            **KRAFT, type=kind, topic_states=list(topics), live_brokers=BROKERS
        )
        response = await self.send(ApiKey.UPDATE_METADATA, 8, message)
        assert response.error_code == ErrorCode.NONE

    async def lead(self, *topics: LeaderAndIsrTopicState, kind: int = 1) -> LeaderAndIsrResponse:
        message = LeaderAndIsrRequest(**KRAFT, type=kind, topic_states=list(topics))
        response: LeaderAndIsrResponse = await self.send(ApiKey.LEADER_AND_ISR, 7, message)
        return response

    @property
    def replicas(self) -> set[tuple[str, int]]:
        return set(self.partitions.by_name)


class _NoSettings:
    def forget(self, topic: str) -> None:
        """See SettingsCache."""


def topic(
    name: str, *numbers: int, topic_id: bytes = TOPIC_ID, leader: int = ME, epoch: int = 9
) -> UpdateMetadataTopicState:
    states = [
        UpdateMetadataPartitionState("", n, 2, leader, epoch, [ME, OTHER], 5, [ME, OTHER])
        for n in numbers
    ]
    return UpdateMetadataTopicState(name, topic_id, states)


def led(
    name: str, number: int, epoch: int = 9, *, topic_id: bytes = TOPIC_ID, replicas: Any = (ME,)
) -> LeaderAndIsrTopicState:
    state = LeaderAndIsrPartitionState("", number, 2, ME, epoch, [ME], 5, list(replicas))
    return LeaderAndIsrTopicState(name, topic_id, [state])


async def broker_with_replicas(folder: Path) -> Broker:
    broker = Broker(folder)
    await broker.update(topic("orders", 0, 1), topic("lines", 0, topic_id=OTHER_ID))
    assert broker.replicas == {("orders", 0), ("orders", 1), ("lines", 0)}
    for partition in broker.partitions.by_name.values():
        append(partition, b"a record")
    return broker


async def test_a_deletion_has_neither_a_topic_id_nor_a_request_for_leaders(tmp_path: Path) -> None:
    """So a real controller sends it: the leader is -2, and the id of the topic is zero."""
    broker = await broker_with_replicas(tmp_path)
    await broker.update(topic("orders", 0, 1, topic_id=bytes(16), leader=-2))
    assert broker.replicas == {("lines", 0)}
    assert broker.cache.topic_name(TOPIC_ID) is None


async def test_each_partition_gets_the_error_that_kafka_gives(tmp_path: Path) -> None:
    broker = await broker_with_replicas(tmp_path)
    response = await broker.lead(
        led("orders", 0),
        led("orders", 1, epoch=8),
        led("lines", 0, topic_id=TOPIC_ID),
        led("orders", 7, replicas=(OTHER,)),
        led("new", 0, topic_id=bytes(range(16))),
    )
    assert response.error_code == ErrorCode.NONE
    assert [topic.partition_errors[0].error_code for topic in response.topics] == [
        ErrorCode.NONE,
        ErrorCode.STALE_CONTROLLER_EPOCH,
        ErrorCode.INCONSISTENT_TOPIC_ID,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.NONE,
    ]


async def test_records_of_replicas_that_the_controller_does_not_know_stay_on_disk(
    tmp_path: Path,
) -> None:
    """The two requests after a takeover; a controller with an empty log would delete everything."""
    broker = await broker_with_replicas(tmp_path)
    await broker.lead(led("orders", 1), kind=FULL)
    await broker.update(topic("orders", 1), kind=FULL)
    assert broker.replicas == {("orders", 1)}
    strays = [name for name in sorted(os.listdir(tmp_path)) if name.endswith("-stray")]
    assert [name.partition(".")[0] for name in strays] == ["lines-0", "orders-0"]
    again = directories(tmp_path)
    assert set(again.logs) == {("orders", 1)}, "strays are not loaded"


async def test_a_request_of_type_incremental_keeps_the_other_replicas(tmp_path: Path) -> None:
    broker = await broker_with_replicas(tmp_path)
    await broker.lead(led("orders", 1), kind=1)
    assert len(broker.replicas) == 3


@pytest.mark.parametrize(
    ("epoch", "deletes", "error", "left"),
    [
        (8, True, ErrorCode.FENCED_LEADER_EPOCH, 3),
        (9, True, ErrorCode.NONE, 2),
        (-2, True, ErrorCode.NONE, 2),
        (-1, True, ErrorCode.NONE, 2),
        (9, False, ErrorCode.NONE, 3),
    ],
)
async def test_a_replica_is_stopped_unless_its_leader_epoch_is_old(
    tmp_path: Path, epoch: int, deletes: bool, error: ErrorCode, left: int
) -> None:
    broker = await broker_with_replicas(tmp_path)
    state = StopReplicaPartitionState(1, epoch, deletes)
    unknown = StopReplicaTopicState("unknown", [StopReplicaPartitionState(3, -2, True)])
    states = [StopReplicaTopicState("orders", [state]), unknown]
    response = await broker.send(
        ApiKey.STOP_REPLICA, 4, StopReplicaRequest(**KRAFT, topic_states=states)
    )
    assert [row.error_code for row in response.partition_errors] == [error, ErrorCode.NONE]
    assert len(broker.replicas) == left


async def test_clients_see_brokers_as_controller(tmp_path: Path) -> None:
    broker = Broker(tmp_path)
    view = ClusterView(
        broker.cache, broker_id=ME, cluster_id="c", named_controllers={}, choose=lambda count: 1
    )
    assert not view.is_random("INNER")
    await broker.update()
    assert view.is_random("INNER")
    assert view.controller_id("INNER") in (ME, OTHER)
    mine = UpdateMetadataRequest(controller_id=ME, controller_epoch=9, live_brokers=BROKERS)
    broker.cache.apply(MetadataUpdate(ME, 9, 77, b"", True, True, message=mine))
    assert view.controller_id("INNER") == ME
    assert not broker.cache.controller_is_kraft


def test_a_controllers_request_may_have_more_elements_than_a_clients() -> None:
    topics = [topic("large", *range(ELEMENTS_MAX // 4))]
    data = encode_request(6, 8, UpdateMetadataRequest(topic_states=topics))
    message = decode_request(6, 8, data)
    assert len(message.topic_states[0].partition_states) == ELEMENTS_MAX // 4
