"""ListOffsets on empty logs (values from a live Kafka 3.9.1) and on the log of a new leader."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any

import pytest
from immutables import Map

from bridgehead.kafka_wire.codec import decode_response, encode_response
from bridgehead.kafka_wire.errors import ErrorCode
from bridgehead.kafka_wire.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsTopic,
)
from broker_proxy.apis.records.list_offsets import ListOffsets
from broker_proxy.metadata.cache import MetadataCache
from cluster_model.image import BrokerRegistration, MetadataImage
from cluster_model.records import PartitionRecord, PartitionState, TopicRecord
from tests.unit.broker_proxy.client_requests import Rule, a_request, authorize_every_client
from tests.unit.broker_proxy.coordinating_broker import apply_image

CREATED_MS = 1_700_000_000_000
LED, ELSEWHERE, FOLLOWED, UNKNOWN = 0, 1, 2, 9
EPOCH = 2
Result = tuple[int, int, int, list[int]]


def api(allowed: Rule | bool = True) -> ListOffsets:
    """Return the API of broker 1.

    The broker leads partition 0, has no replica of partition 1 and follows broker 2 in partition 2.
    """
    image = MetadataImage(
        controller_epoch=1, brokers=Map({i: BrokerRegistration(i, i, ()) for i in (1, 2)})
    )
    assignment = ((1,), (2,), (2, 1))
    image = image.replay([TopicRecord("t", b"i" * 16, assignment, {})])
    states = [PartitionState(replicas[0], EPOCH, replicas, 1, 0) for replicas in assignment]
    image = image.replay([PartitionRecord("t", p, state) for p, state in enumerate(states)])
    cache = apply_image(MetadataCache(lambda: None), image)
    return ListOffsets(1, cache, authorize_every_client(allowed), times)


async def times(logs: Sequence[tuple[str, int]]) -> dict[tuple[str, int], int]:
    """Return CREATED_MS as the creation time of each log."""
    return dict.fromkeys(logs, CREATED_MS)


async def call(
    version: int, topics: list[ListOffsetsTopic], api: ListOffsets, **fields: Any
) -> Any:
    request = ListOffsetsRequest(replica_id=fields.pop("replica_id", -1), topics=topics, **fields)
    response = await api.handle(a_request(2, version), request)
    return decode_response(2, version, encode_response(2, version, response)).topics


async def one(
    version: int,
    timestamp: int,
    *,
    partition: int = LED,
    epoch: int = -1,
    offsets_max: int = 1,
    **fields: Any,
) -> Result:
    """Return (error, offset, leader epoch, offsets) of a partition of `t`.

    Only version 0 returns a list of offsets; from version 1 on the list is empty.
    """
    requested = ListOffsetsPartition(partition, epoch, timestamp, offsets_max)
    (topic,) = await call(version, [ListOffsetsTopic("t", [requested])], api(), **fields)
    (p,) = topic.partitions
    assert p.timestamp == -1
    return p.error_code, p.offset, p.leader_epoch, p.old_style_offsets


@pytest.mark.parametrize("version", range(1, 10))
async def test_list_offsets_responds_for_an_empty_log_as_kafka_does(version: int) -> None:
    epoch = EPOCH if version >= 4 else -1
    begins: Result = (0, 0, epoch, [])
    nothing: Result = (0, -1, -1, [])
    unsupported: Result = (35, -1, -1, [])
    assert await one(version, -1) == begins
    assert await one(version, -2) == begins
    assert await one(version, -3) == (nothing if version >= 7 else unsupported)
    assert await one(version, -4) == (begins if version >= 8 else unsupported)
    assert await one(version, -5) == (nothing if version >= 9 else unsupported)
    assert await one(version, -6) == unsupported
    for timestamp in (0, CREATED_MS, 10**15):
        assert await one(version, timestamp) == nothing


async def test_list_offsets_v0_returns_the_start_of_the_only_segment() -> None:
    assert await one(0, -1) == (0, -1, -1, [0])
    assert await one(0, -2, offsets_max=3) == (0, -1, -1, [0])
    assert await one(0, -2, offsets_max=0) == (0, -1, -1, [])
    assert await one(0, -2, offsets_max=-1) == (-1, -1, -1, [])
    assert await one(0, 10**12) == (0, -1, -1, [])
    assert await one(0, CREATED_MS - 1) == (0, -1, -1, [])
    assert await one(0, CREATED_MS) == (0, -1, -1, [0])
    assert await one(0, 10**15, offsets_max=5) == (0, -1, -1, [0])
    assert await one(0, -3) == (35, -1, -1, [])


# Each row: (replica id, leader epoch, timestamp) of a request, and (error, offset, leader epoch) of
# its response.
FOLLOWER = [
    ((-1, -1, -1), (6, -1, -1)),
    ((-1, 1, -1), (74, -1, -1)),
    ((-1, 9, -1), (75, -1, -1)),
    ((-2, -1, -1), (0, 0, EPOCH)),
    ((-2, -1, -2), (0, 0, -1)),
    ((-2, -1, -5), (0, -1, -1)),
    ((-2, 1, -1), (74, -1, -1)),
    ((2, -1, -1), (6, -1, -1)),
    ((2, 9, -1), (75, -1, -1)),
]


@pytest.mark.parametrize(("requested", "results"), FOLLOWER)
async def test_a_follower_responds_to_debugging_consumers_only(
    requested: Any, results: Any
) -> None:
    replica_id, epoch, timestamp = requested
    response = await one(9, timestamp, partition=FOLLOWED, epoch=epoch, replica_id=replica_id)
    assert response[:3] == results


async def test_a_broker_without_a_replica_returns_not_leader_or_follower() -> None:
    for epoch in (-1, 0, 9):
        assert (await one(9, -1, partition=ELSEWHERE, epoch=epoch))[0] == 6
        assert (await one(9, -1, partition=UNKNOWN, epoch=epoch))[0] == 3


async def test_the_leader_rejects_other_leader_epochs() -> None:
    assert (await one(4, -1, epoch=EPOCH))[0] == 0
    assert (await one(4, -1, epoch=EPOCH - 1))[0] == 74
    assert (await one(4, -1, epoch=-5))[0] == 74
    assert (await one(4, -1, epoch=EPOCH + 1))[0] == 75


async def test_an_invalid_isolation_level_is_an_unknown_server_error() -> None:
    assert (await one(2, -1, isolation_level=1))[0] == 0
    assert (await one(2, -1, isolation_level=5))[0] == ErrorCode.UNKNOWN_SERVER_ERROR


class NewLeadersLog:
    """The log of a new leader. Its high watermark is below the first offset of the leader epoch."""

    start_offset, high_watermark, end_offset = 0, 3, 5

    def epoch_start(self) -> int:
        return 5

    def epoch_of_start(self) -> int:
        return 0

    def at_time(self, timestamp: int) -> tuple[int, int, int] | None:
        return None

    def newest(self) -> tuple[int, int, int] | None:
        return None

    def segment_times(self) -> list[tuple[int, int]]:
        return [(0, CREATED_MS), (5, CREATED_MS)]


@pytest.mark.parametrize("version", range(10))
@pytest.mark.parametrize("timestamp", [-1, CREATED_MS])
async def test_a_new_leader_responds_to_consumers_as_kafka_does(
    version: int, timestamp: int
) -> None:
    """Source: KafkaApis.handleListOffsetRequest; version 0 does not check the high watermark."""
    leader = dataclasses.replace(api(), offsets_of=lambda topic, partition: NewLeadersLog())
    requested = ListOffsetsPartition(LED, -1, timestamp, 2)
    (topic,) = await call(version, [ListOffsetsTopic("t", [requested])], leader)
    (response,) = topic.partitions
    if version == 0:
        assert (response.error_code, response.old_style_offsets) == (0, [3, 0])
    elif version < 5:
        assert response.error_code == ErrorCode.LEADER_NOT_AVAILABLE
    else:
        assert response.error_code == ErrorCode.OFFSET_NOT_AVAILABLE


async def test_a_debugging_consumer_sees_the_end_of_the_log() -> None:
    leader = dataclasses.replace(api(), offsets_of=lambda topic, partition: NewLeadersLog())
    requested = ListOffsetsPartition(LED, -1, -1)
    (topic,) = await call(9, [ListOffsetsTopic("t", [requested])], leader, replica_id=-2)
    assert [(p.error_code, p.offset) for p in topic.partitions] == [(0, 5)]


@pytest.mark.parametrize(("version", "error"), [(0, 0), (1, 42), (9, 42)])
async def test_a_repeated_partition_is_rejected_from_version_1(version: int, error: int) -> None:
    requested = ListOffsetsPartition(LED, -1, -1, 1)
    together = await call(version, [ListOffsetsTopic("t", [requested, requested])], api())
    apart = await call(version, [ListOffsetsTopic("t", [requested])] * 2, api())
    for topics in (together, apart):
        assert [p.error_code for topic in topics for p in topic.partitions] == [error] * 2


async def test_unauthorized_topics_are_last_in_the_response() -> None:
    requested = [ListOffsetsPartition(LED, -1, -1)]
    entries = [ListOffsetsTopic(name, requested) for name in ("secret", "t", "missing")]
    may = lambda operation, kind, name: name != "secret"  # noqa: E731
    topics = await call(9, [*entries, ListOffsetsTopic("t", [])], api(may))
    assert [(t.name, [p.error_code for p in t.partitions]) for t in topics] == [
        ("t", [0]),
        ("missing", [3]),
        ("t", []),
        ("secret", [ErrorCode.TOPIC_AUTHORIZATION_FAILED]),
    ]
