"""ListOffsets on empty logs: the answers that a live Kafka 3.9.1 gave, case by case."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from immutables import Map

from bridgehead.kafka_wire.codec import decode_response, encode_request, encode_response
from bridgehead.kafka_wire.errors import ErrorCode
from bridgehead.kafka_wire.headers import RequestHeader
from bridgehead.kafka_wire.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsTopic,
)
from broker_proxy.apis.base import ClientConnectionInfo, ClientRequest
from broker_proxy.apis.list_offsets import ListOffsets
from broker_proxy.metadata_cache import MetadataCache
from cluster_model.image import BrokerRegistration, MetadataImage
from cluster_model.principal import ANONYMOUS
from cluster_model.records import PartitionRecord, PartitionState, TopicRecord
from cluster_model.update_metadata import full_parts
from envelope.messages import MetadataUpdate
from tests.unit.authorizing import Rule, saying_to_everybody

MADE_MS = 1_700_000_000_000
LED, ELSEWHERE, FOLLOWED, UNKNOWN = 0, 1, 2, 9
EPOCH = 2
Told = tuple[int, int, int, list[int]]


def api(allowed: Rule | bool = True) -> ListOffsets:
    """Broker 1: it leads partition 0, has nothing of 1, follows broker 2 in partition 2."""
    image = MetadataImage(
        controller_epoch=1, brokers=Map({i: BrokerRegistration(i, i, ()) for i in (1, 2)})
    )
    assignment = ((1,), (2,), (2, 1))
    image = image.replay([TopicRecord("t", b"i" * 16, assignment, {})])
    states = [PartitionState(replicas[0], EPOCH, replicas, 1, 0) for replicas in assignment]
    image = image.replay([PartitionRecord("t", p, state) for p, state in enumerate(states)])
    cache = MetadataCache(lambda: None)
    (part,) = full_parts(image, 1)
    cache.apply(MetadataUpdate(1, 1, 1, encode_request(6, 8, part), True, True))
    return ListOffsets(1, cache, saying_to_everybody(allowed), times)


async def times(logs: Sequence[tuple[str, int]]) -> dict[tuple[str, int], int]:
    """Every log was made at MADE_MS."""
    return dict.fromkeys(logs, MADE_MS)


async def ask(version: int, topics: list[ListOffsetsTopic], api: ListOffsets, **fields: Any) -> Any:
    request = ListOffsetsRequest(replica_id=fields.pop("replica_id", -1), topics=topics, **fields)
    connection = ClientConnectionInfo(
        "c", "PLAINTEXT", "PLAINTEXT", "shipped", "127.0.0.1", b"\x7f\0\0\1", ANONYMOUS
    )
    header = RequestHeader(2, version, 1, None)
    answer = await api.answer(ClientRequest("r", header, b"", b"", connection, 0), request)
    return decode_response(2, version, encode_response(2, version, answer)).topics


async def one(
    version: int,
    timestamp: int,
    *,
    partition: int = LED,
    epoch: int = -1,
    offsets_max: int = 1,
    **fields: Any,
) -> Told:
    """Return (error, offset, leader epoch, offsets of version 0) of one partition of `t`."""
    asked = ListOffsetsPartition(partition, epoch, timestamp, offsets_max)
    (topic,) = await ask(version, [ListOffsetsTopic("t", [asked])], api(), **fields)
    (p,) = topic.partitions
    assert p.timestamp == -1
    return p.error_code, p.offset, p.leader_epoch, p.old_style_offsets


@pytest.mark.parametrize("version", range(1, 10))
async def test_an_empty_log_begins_and_ends_at_0_and_has_no_timestamps(version: int) -> None:
    """Timestamps that a version does not know are refused with 35."""
    epoch = EPOCH if version >= 4 else -1
    begins: Told = (0, 0, epoch, [])
    nothing: Told = (0, -1, -1, [])
    unsupported: Told = (35, -1, -1, [])
    assert await one(version, -1) == begins
    assert await one(version, -2) == begins
    assert await one(version, -3) == (nothing if version >= 7 else unsupported)
    assert await one(version, -4) == (begins if version >= 8 else unsupported)
    assert await one(version, -5) == (nothing if version >= 9 else unsupported)
    assert await one(version, -6) == unsupported
    for timestamp in (0, MADE_MS, 10**15):
        assert await one(version, timestamp) == nothing


async def test_version_0_lists_the_one_segment() -> None:
    """As many offsets as asked for; a segment that is younger than the timestamp is none."""
    assert await one(0, -1) == (0, -1, -1, [0])
    assert await one(0, -2, offsets_max=3) == (0, -1, -1, [0])
    assert await one(0, -2, offsets_max=0) == (0, -1, -1, [])
    assert await one(0, -2, offsets_max=-1) == (-1, -1, -1, [])
    assert await one(0, 10**12) == (0, -1, -1, [])
    assert await one(0, MADE_MS - 1) == (0, -1, -1, [])
    assert await one(0, MADE_MS) == (0, -1, -1, [0])
    assert await one(0, 10**15, offsets_max=5) == (0, -1, -1, [0])
    assert await one(0, -3) == (35, -1, -1, [])


# replica that asks, leader epoch it knows, timestamp -> error, offset, leader epoch
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


@pytest.mark.parametrize(("asked", "told"), FOLLOWER)
async def test_a_follower_answers_a_debugging_consumer_only(asked: Any, told: Any) -> None:
    """The leader epoch is looked at before the leader."""
    replica_id, epoch, timestamp = asked
    answer = await one(9, timestamp, partition=FOLLOWED, epoch=epoch, replica_id=replica_id)
    assert answer[:3] == told


async def test_who_is_no_replica_says_so_whatever_the_epoch() -> None:
    """6; and 3 for a partition that nobody has."""
    for epoch in (-1, 0, 9):
        assert (await one(9, -1, partition=ELSEWHERE, epoch=epoch))[0] == 6
        assert (await one(9, -1, partition=UNKNOWN, epoch=epoch))[0] == 3


async def test_the_leader_refuses_an_older_and_a_newer_leader_epoch() -> None:
    """74 also for what is no epoch; versions before 4 do not say any."""
    assert (await one(4, -1, epoch=EPOCH))[0] == 0
    assert (await one(4, -1, epoch=EPOCH - 1))[0] == 74
    assert (await one(4, -1, epoch=-5))[0] == 74
    assert (await one(4, -1, epoch=EPOCH + 1))[0] == 75


async def test_an_isolation_level_that_is_none_is_an_unknown_error() -> None:
    """As in Kafka."""
    assert (await one(2, -1, isolation_level=1))[0] == 0
    assert (await one(2, -1, isolation_level=5))[0] == ErrorCode.UNKNOWN_SERVER_ERROR


@pytest.mark.parametrize(("version", "error"), [(0, 0), (1, 42), (9, 42)])
async def test_a_partition_that_comes_twice_is_refused_twice(version: int, error: int) -> None:
    """In one entry or in two; version 0 answers it twice."""
    asked = ListOffsetsPartition(LED, -1, -1, 1)
    together = await ask(version, [ListOffsetsTopic("t", [asked, asked])], api())
    apart = await ask(version, [ListOffsetsTopic("t", [asked])] * 2, api())
    for topics in (together, apart):
        assert [p.error_code for topic in topics for p in topic.partitions] == [error] * 2


async def test_topics_without_the_right_come_last() -> None:
    """29, whether they exist or not; a topic without partitions is answered without any."""
    asked = [ListOffsetsPartition(LED, -1, -1)]
    entries = [ListOffsetsTopic(name, asked) for name in ("secret", "t", "missing")]
    may = lambda operation, kind, name: name != "secret"  # noqa: E731
    topics = await ask(9, [*entries, ListOffsetsTopic("t", [])], api(may))
    assert [(t.name, [p.error_code for p in t.partitions]) for t in topics] == [
        ("t", [0]),
        ("missing", [3]),
        ("t", []),
        ("secret", [ErrorCode.TOPIC_AUTHORIZATION_FAILED]),
    ]
