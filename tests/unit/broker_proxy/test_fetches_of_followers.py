"""A leader reads only changed partitions for a follower. The follower misses no change."""

from __future__ import annotations

import asyncio
import itertools
import time
from collections import Counter
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from bridgehead.kafka_wire.api_key import ApiKey
from bridgehead.kafka_wire.errors import ErrorCode
from bridgehead.kafka_wire.messages.fetch import (
    EpochEndOffset,
    FetchPartition,
    FetchRequest,
    FetchResponse,
    FetchTopic,
    PartitionData,
    ReplicaState,
)
from broker_proxy.apis.records.fetch import Fetch
from broker_proxy.apis.records.fetch_sessions import FetchSessions
from cluster_model.acls.authorization import Authorize
from data_plane.partition import Partition
from data_plane.partitions import Partitions
from data_plane.record_deletion import RecordDeletion
from metrics import names
from tests.unit.broker_proxy.client_requests import a_request
from tests.unit.data_plane.logs import NOW, directories
from tests.unit.data_plane.replicas import Isrs, View, append

VERSION = 17
FOLLOWER = 2
IDS = {"a": b"a" * 16, "b": b"b" * 16}
IN_SYNC = View(1, 0, 0, (1, 2))


class _Settings:
    async def read(self, topic: str) -> None:
        pass

    def forget(self, topic: str) -> None:
        pass


class Leader:
    """Broker 1 leads a-0 and b-0; broker 2 fetches them in one session."""

    def __init__(self, folder: Path) -> None:
        self.isrs = Isrs()
        self.is_broker = True
        self.counts: Counter[Any] = Counter()
        self.now = NOW
        logs = directories(folder)
        self.partitions = Partitions(1, logs, cast(Any, _Settings()), lambda: self.now, self.isrs)
        self.topics: dict[str, Any] = {}
        for name in IDS:
            self.apply(name, IN_SYNC)
        cache = SimpleNamespace(
            topics=self.topics, brokers={}, topic_name={i: n for n, i in IDS.items()}.get
        )
        ids = itertools.count(1)
        self.sessions = FetchSessions(10, lambda: next(ids))
        self.fetch = Fetch(
            cache=cast(Any, cache),
            partitions=self.partitions,
            authorize_for=lambda _request: cast(Authorize, lambda *_right: self.is_broker),
            bytes_max=1_000_000,
            deletion=RecordDeletion(self.partitions, lambda _broker: True),
            sessions=self.sessions,
            quota=cast(Any, None),
            metrics=cast(Any, SimpleNamespace(count=self.count)),
        )
        self.bytes_max = 1_000_000
        self.epoch = 0
        self.session = 0

    def count(self, metric: Any, by: int = 1) -> None:
        self.counts[metric] += by

    def apply(self, name: str, view: View) -> None:
        self.topics[name] = SimpleNamespace(topic_id=IDS[name], partitions={0: view})
        self.partitions.apply(self.topics, [name])

    def __getitem__(self, name: str) -> Partition:
        return self.partitions.by_name[name, 0]

    async def send(
        self, wait_ms: int = 0, leader_epoch: int = 0, **offsets: int
    ) -> dict[str, PartitionData]:
        """Fetch from these offsets, in the session; return the partitions of the response."""
        before = self.counts[names.FETCH_REQUESTS]
        message = FetchRequest(
            max_wait_ms=wait_ms,
            min_bytes=1,
            max_bytes=self.bytes_max,
            session_id=self.session,
            session_epoch=self.epoch,
            topics=[
                FetchTopic(IDS[name], "", [FetchPartition(0, leader_epoch, offset, -1, 0, 1_000)])
                for name, offset in offsets.items()
            ],
            replica_state=ReplicaState(FOLLOWER, 1),
        )
        response = await self.fetch.handle(a_request(ApiKey.FETCH, VERSION), message)
        assert isinstance(response, FetchResponse)
        assert response.error_code == ErrorCode.NONE
        self.session, self.epoch = response.session_id, self.epoch + 1
        self.read = self.counts[names.FETCH_REQUESTS] - before
        name_of = {topic_id: name for name, topic_id in IDS.items()}
        return {name_of[topic.topic_id]: topic.partitions[0] for topic in response.responses}


@pytest.fixture
async def leader(tmp_path: Path) -> Leader:
    result = Leader(tmp_path)
    await result.send(a=0, b=0)
    return result


async def test_only_changed_partitions_are_read(leader: Leader) -> None:
    assert await leader.send() == {}
    assert leader.read == 0
    append(leader["b"], b"x")
    sent = await leader.send()
    assert (list(sent), leader.read) == (["b"], 1)
    assert sent["b"].records
    await leader.send(b=1)
    assert leader["b"].high_watermark == 1
    assert (await leader.send(), leader.read) == ({}, 0)


async def test_a_partition_without_room_in_a_response_is_first_in_the_next(leader: Leader) -> None:
    leader.bytes_max = 1
    append(leader["a"], b"x")
    append(leader["b"], b"y")
    assert list(await leader.send()) == ["a"]
    assert list(await leader.send(a=1)) == ["b", "a"]


async def test_an_append_ends_the_wait_of_a_fetch(leader: Leader) -> None:
    waiting = asyncio.create_task(leader.send(60_000))
    await asyncio.sleep(0)
    append(leader["a"], b"x")
    async with asyncio.timeout(10):
        assert (await waiting)["a"].records


async def test_a_fetch_waits_while_no_partition_changes(leader: Leader) -> None:
    began = time.monotonic()
    assert await leader.send(50) == {}
    assert time.monotonic() - began >= 0.05


async def test_the_lag_of_a_follower_is_counted_from_its_last_request(leader: Leader) -> None:
    await leader.send()
    now = time.monotonic_ns() // 1_000_000
    append(leader["a"], b"x")
    leader.isrs.now = now + leader.isrs.lag_max_ms - 1_000
    leader["a"].check_lag()
    assert leader.isrs.proposed == []
    leader.isrs.now = now + leader.isrs.lag_max_ms + 1_000
    leader["a"].check_lag()
    assert leader.isrs.proposed == [(1,)]


async def test_a_partition_is_always_read_for_a_follower_outside_its_isr(leader: Leader) -> None:
    leader.apply("a", View(1, 0, 1, (1,)))
    leader.isrs.dead = {FOLLOWER}
    await leader.send()
    await leader.send()
    assert (leader.read, leader.isrs.proposed) == (1, [])
    leader.isrs.dead = set()
    await leader.send()
    assert leader.isrs.proposed == [(1, 2)]
    leader.apply("a", View(1, 0, 2, (1, 2)))
    await leader.send()
    assert (await leader.send(), leader.read) == ({}, 0)


async def test_follower_learns_the_log_start_after_retention(leader: Leader) -> None:
    append(leader["a"], b"x")
    await leader.send()
    await leader.send(a=1)
    assert (await leader.send(), leader.read) == ({}, 0)
    leader.now += 8 * 24 * 3_600_000
    assert await leader.partitions.apply_retention() == 1
    assert (await leader.send())["a"].log_start_offset == 1


async def test_follower_learns_of_a_new_epoch_and_of_a_deletion(leader: Leader) -> None:
    leader.apply("a", View(1, 1, 1, (1, 2)))
    assert (await leader.send())["a"].error_code == ErrorCode.FENCED_LEADER_EPOCH
    del leader.topics["b"]
    leader.partitions.apply(leader.topics, ["b"])
    assert (await leader.send())["b"].error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


async def test_after_an_election_the_next_request_names_the_new_epoch(leader: Leader) -> None:
    """A waiting request ends without an error. A follower that has not heard gets one then."""
    waiting = asyncio.create_task(leader.send(60_000))
    await asyncio.sleep(0)
    leader.apply("a", View(1, 1, 1, (1, 2)))
    async with asyncio.timeout(10):
        assert await waiting == {}
    async with asyncio.timeout(10):
        sent = await leader.send(60_000)
    assert {name: result.error_code for name, result in sent.items()} == {
        "a": ErrorCode.FENCED_LEADER_EPOCH
    }
    assert (await leader.send(leader_epoch=1, a=0), leader.read) == ({}, 1)


async def test_an_append_after_an_election_ends_the_wait_at_once(leader: Leader) -> None:
    waiting = asyncio.create_task(leader.send(60_000))
    await asyncio.sleep(0)
    leader.apply("a", View(1, 1, 1, (1, 2)))
    append(leader["b"], b"x")
    async with asyncio.timeout(10):
        assert list(await waiting) == ["b"]


async def test_only_what_the_follower_does_not_know_is_in_a_response(leader: Leader) -> None:
    """An idle partition is omitted, also the first time, but not if its offsets are news."""
    for name in IDS:
        append(leader[name], b"x")
    await leader.send(a=1, b=1)
    leader.apply("a", View(1, 1, 1, (1, 2)))
    leader.apply("b", View(1, 1, 1, (1, 2)))
    leader["b"].log.advance_start(1)
    sent = await leader.send(leader_epoch=1, a=1, b=1)
    assert {name: result.log_start_offset for name, result in sent.items()} == {"b": 1}
    assert (await leader.send(leader_epoch=1), leader.read) == ({}, 0)


async def test_a_follower_with_fewer_records_is_never_taken_for_idle(leader: Leader) -> None:
    append(leader["a"], b"x")
    await leader.send(a=1)
    leader.apply("a", View(1, 1, 1, (1, 2)))
    assert (await leader.send(leader_epoch=1, a=0))["a"].records


async def test_a_follower_whose_last_epoch_differs_is_never_taken_for_idle(leader: Leader) -> None:
    """Its log is as long as the leader's, but its last record is of another leader."""
    append(leader["a"], b"x")
    await leader.send(a=1)
    leader.apply("a", View(1, 2, 2, (1, 2)))
    topics = [FetchTopic(IDS["a"], "", [FetchPartition(0, 2, 1, 1, 0, 1_000)])]
    message = FetchRequest(
        session_id=leader.session,
        session_epoch=leader.epoch,
        max_bytes=1_000_000,
        topics=topics,
        replica_state=ReplicaState(FOLLOWER, 1),
    )
    response = await leader.fetch.handle(a_request(ApiKey.FETCH, VERSION), message)
    assert isinstance(response, FetchResponse)
    (partition,) = response.responses[0].partitions
    assert partition.diverging_epoch == EpochEndOffset(0, 1)


async def test_a_client_that_is_no_longer_a_broker_is_rejected(leader: Leader) -> None:
    leader.is_broker = False
    sent = await leader.send()
    assert {result.error_code for result in sent.values()} == {ErrorCode.TOPIC_AUTHORIZATION_FAILED}
    assert sent.keys() == {"a", "b"}


async def test_a_new_session_ends_the_watches_of_the_old_one(leader: Leader) -> None:
    watched = len(leader["a"]._watchers or ())
    assert watched == 1
    leader.epoch = 0
    await leader.send(a=0)
    assert (len(leader["a"]._watchers or ()), len(leader["b"]._watchers or ())) == (1, 0)
    assert len(leader.sessions) == 1


async def test_a_fetch_by_topic_id_never_reads_a_new_topic_of_the_same_name(leader: Leader) -> None:
    """The topic is deleted and created again while a fetch waits for records."""
    waiting = asyncio.create_task(leader.send(60_000, a=0))
    await asyncio.sleep(0)
    view = SimpleNamespace(topic_id=b"n" * 16, partitions={0: IN_SYNC})
    leader.topics["a"] = cast(Any, view)
    leader.partitions.apply(leader.topics, ["a"])
    append(leader["a"], b"of the new topic")
    async with asyncio.timeout(10):
        response = (await waiting)["a"]
    assert response.error_code == ErrorCode.INCONSISTENT_TOPIC_ID
    assert not response.records


async def fetched(leader: Leader, *wanted: FetchPartition) -> list[PartitionData]:
    """Fetch partitions of `a` without a session; wait for a byte for up to ten seconds."""
    message = FetchRequest(
        max_wait_ms=10_000,
        min_bytes=1,
        max_bytes=1_000_000,
        session_epoch=-1,
        topics=[FetchTopic(IDS["a"], "", list(wanted))],
        replica_state=ReplicaState(FOLLOWER, 1),
    )
    response = await leader.fetch.handle(a_request(ApiKey.FETCH, VERSION), message)
    assert isinstance(response, FetchResponse)
    return response.responses[0].partitions


async def test_an_unknown_partition_does_not_end_the_wait_for_the_others(leader: Leader) -> None:
    """KafkaApis.handleFetchRequest: only partitions that can be read are passed on."""
    existing, unknown = FetchPartition(0, 0, 0, -1, 0, 1_000), FetchPartition(9, 0, 0, -1, 0, 1_000)
    waiting = asyncio.create_task(fetched(leader, existing, unknown))
    for _ in range(10):
        await asyncio.sleep(0)
    assert not waiting.done()
    append(leader["a"], b"x")
    responses = {response.partition_index: response for response in await waiting}
    assert responses[0].records
    assert responses[9].error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    async with asyncio.timeout(5):
        (only,) = await fetched(leader, unknown)
    assert only.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


@pytest.mark.parametrize("epoch", [-1, -2])
async def test_a_negative_last_fetched_epoch_is_none(leader: Leader, epoch: int) -> None:
    append(leader["a"], b"x")
    (response,) = await fetched(leader, FetchPartition(0, 0, 0, epoch, 0, 1_000))
    assert response.records
    assert response.diverging_epoch.end_offset == -1
