"""A follower's log becomes equal to the leader's log, whatever it contained before."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from bridgehead.kafka_wire.errors import ErrorCode
from bridgehead.kafka_wire.messages.fetch import (
    FetchableTopicResponse,
    FetchRequest,
    FetchResponse,
    PartitionData,
)
from bridgehead.kafka_wire.messages.list_offsets import (
    ListOffsetsPartitionResponse,
    ListOffsetsResponse,
    ListOffsetsTopicResponse,
)
from data_plane.partition import Partition
from data_plane.replication.fetching import Fetching
from tests.unit.data_plane.logs import NOW, TOPIC_ID, directories
from tests.unit.data_plane.replicas import LIMITS, Isrs, View, append, replica, response_to


class Pair:
    """Broker 1 leads the partition, and broker 2 follows."""

    def __init__(self, folder: Path, **configs: object) -> None:
        self.isrs = Isrs()
        self.leader = replica(folder, 1, self.isrs, **configs)
        self.follower = replica(folder, 2, Isrs())
        self.directories = directories(folder / "others of 2")
        self.fetching = Fetching(2, 1, LIMITS)
        self.apply(View(1, 0, 0, (1, 2, 3)))

    def apply(self, view: View) -> None:
        for end in (self.leader, self.follower):
            end.apply(view)
        self.fetching.follow((self.follower.topic, self.follower.number), self.follower)

    def fetch(self) -> None:
        request = self.fetching.fetch_request(0, 7)
        assert request is not None
        self.fetching.fetched(response_to(self.leader, request), 0, NOW)

    def fetch_all(self) -> None:
        while True:
            before = self.follower.log.end_offset
            self.fetch()
            if self.follower.log.end_offset == before:
                return


@pytest.fixture
def pair(tmp_path: Path) -> Pair:
    return Pair(tmp_path)


def contents(partition: Partition) -> bytes:
    log = partition.log
    return log.read(log.start_offset, 1_000_000, log.end_offset)


def test_follower_copies_the_log_and_learns_the_high_watermark(pair: Pair) -> None:
    append(pair.leader, b"a", b"b", b"c")
    pair.fetch()
    assert contents(pair.follower) == contents(pair.leader)
    assert pair.leader.high_watermark == pair.follower.high_watermark == 0
    pair.isrs.dead = {3}
    pair.apply(View(1, 0, 1, (1, 2)))
    pair.fetch()
    assert pair.leader.high_watermark == pair.follower.high_watermark == 3


def test_follower_joins_the_isr_when_it_reaches_the_high_watermark(pair: Pair) -> None:
    pair.apply(View(1, 0, 1, (1,)))
    pair.isrs.now = 60_000
    append(pair.leader, b"a", b"b")
    assert pair.leader.high_watermark == 2
    pair.fetch()
    assert pair.isrs.proposed == []
    pair.fetch()
    assert pair.isrs.proposed == [(1, 2)]


def test_records_of_a_failed_leader_are_replaced(pair: Pair) -> None:
    append(pair.leader, b"a", b"b")
    pair.fetch_all()
    pair.apply(View(2, 1, 1, (2, 3)))
    append(pair.follower, b"never replicated", b"neither")
    pair.apply(View(1, 2, 2, (1, 3)))
    append(pair.leader, b"c")
    pair.fetch_all()
    assert contents(pair.follower) == contents(pair.leader)
    assert pair.follower.log.epochs.entries == pair.leader.log.epochs.entries


def test_response_of_an_earlier_leader_epoch_is_ignored(pair: Pair) -> None:
    append(pair.leader, b"a")
    request = pair.fetching.fetch_request(0, 7)
    assert request is not None
    late = response_to(pair.leader, request)
    pair.apply(View(1, 1, 1, (1, 2, 3)))
    pair.fetching.fetched(late, 0, NOW)
    assert pair.follower.log.end_offset == 0


def test_response_for_a_deleted_topic_of_the_same_name_is_ignored(pair: Pair) -> None:
    """Only the topic id differs: both topics have leader epoch 0 and an empty follower log."""
    append(pair.leader, b"of the deleted topic")
    request = pair.fetching.fetch_request(0, 7)
    assert request is not None
    late = response_to(pair.leader, request)
    name = pair.follower.topic, pair.follower.number
    log = pair.directories.get_or_create(*name, bytes(reversed(TOPIC_ID)))
    created = Partition(2, log, 0, Isrs())
    created.apply(View(1, 0, 0, (1, 2, 3)))
    pair.fetching.follow(name, created)
    pair.fetching.fetched(late, 0, NOW)
    assert created.log.end_offset == 0


def test_unfollowed_partition_is_not_fetched(pair: Pair) -> None:
    pair.apply(View(3, 1, 1, (3,)))
    assert pair.fetching.is_empty
    assert pair.fetching.fetch_request(0, 7) is None


def test_error_delays_the_next_fetch(pair: Pair) -> None:
    pair.follower.apply(View(1, 5, 5, (1, 2, 3)))
    pair.fetching.follow((pair.follower.topic, pair.follower.number), pair.follower)
    pair.fetch()  # the leader does not know the new leader epoch yet
    assert pair.fetching.fetch_request(LIMITS.backoff_ms - 1, 7) is None
    assert pair.fetching.retry_in_ms(0) == LIMITS.backoff_ms
    assert pair.fetching.fetch_request(LIMITS.backoff_ms, 7) is not None


def offsets(pair: Pair, offset: int) -> None:
    row = ListOffsetsPartitionResponse(0, offset=offset)
    response = ListOffsetsResponse(topics=[ListOffsetsTopicResponse("orders", [row])])
    pair.fetching.offsets_listed(response, 0)


def asked(pair: Pair) -> list[int]:
    request = pair.fetching.offsets_request(0)
    assert request is not None
    return [partition.timestamp for topic in request.topics for partition in topic.partitions]


def test_follower_whose_log_ends_before_the_leaders_start_offset_restarts_there(pair: Pair) -> None:
    append(pair.leader, b"a", b"b", b"c")
    pair.leader.log.advance_start(2)
    pair.fetch()
    assert asked(pair) == [-1]
    offsets(pair, 3)
    assert asked(pair) == [-2]
    offsets(pair, 2)
    assert (pair.follower.log.start_offset, pair.follower.log.end_offset) == (2, 2)
    assert pair.fetching.offsets_request(0) is None
    pair.fetch_all()
    assert contents(pair.follower) == contents(pair.leader)


def test_follower_beyond_the_leaders_end_is_truncated(pair: Pair) -> None:
    append(pair.leader, b"a", b"b")
    pair.fetch_all()
    pair.leader.log.truncate_to(1)  # the leader's disk lost the rest
    pair.fetch()
    assert pair.follower.log.end_offset == 1


def test_follower_without_epochs_requests_the_end_offset_of_a_shorter_log(pair: Pair) -> None:
    append(pair.leader, b"a", b"b")
    pair.fetch_all()
    pair.leader.log.start_at(0)  # the leader's disk lost everything
    pair.leader.log.epochs.entries.clear()
    request = pair.fetching.fetch_request(0, 7)
    assert request is not None
    request.topics[0].partitions[0].last_fetched_epoch = -1
    pair.fetching.fetched(response_to(pair.leader, request), 0, NOW)
    assert asked(pair) == [-1]
    offsets(pair, 0)
    assert pair.follower.log.end_offset == 0


def test_leader_without_enough_replicas_commits_nothing(tmp_path: Path) -> None:
    pair = Pair(tmp_path, min_insync_replicas=2)
    pair.apply(View(1, 0, 1, (1,)))
    pair.isrs.dead = {3}
    append(pair.leader, b"a")
    assert pair.leader.high_watermark == 0
    pair.apply(View(1, 0, 2, (1, 2)))
    pair.fetch_all()
    assert pair.leader.high_watermark == 1


def responded(pair: Pair, session: int = 7, **fields: Any) -> FetchRequest:
    """Answer the next request and return it. The partition in the response has these `fields`."""
    request = pair.fetching.fetch_request(0, 7)
    assert request is not None
    response = FetchResponse(session_id=session)
    if fields or request.topics:
        data = PartitionData(0, **{"high_watermark": 0, "records": b"", **fields})
        response.responses = [FetchableTopicResponse(TOPIC_ID, "", [data])]
    pair.fetching.fetched(response, 0, NOW)
    return request


def named(request: FetchRequest) -> list[int]:
    return [partition.fetch_offset for topic in request.topics for partition in topic.partitions]


def test_requests_name_only_partitions_whose_parameters_changed(pair: Pair) -> None:
    first = responded(pair)
    assert (first.session_id, first.session_epoch, named(first)) == (0, 0, [0])
    second = responded(pair)
    assert (second.session_id, second.session_epoch, named(second)) == (7, 1, [])
    append(pair.leader, b"a")
    third = responded(pair, records=contents(pair.leader))
    assert (third.session_epoch, named(third)) == (2, [])
    fourth = responded(pair)
    assert (fourth.session_epoch, named(fourth)) == (3, [1])


def test_partition_that_cannot_be_fetched_now_leaves_the_session(pair: Pair) -> None:
    responded(pair)
    pair.fetching.follow(("other", 0), replica_of_other(pair))
    responded(pair, error_code=ErrorCode.NOT_LEADER_OR_FOLLOWER)
    request = pair.fetching.fetch_request(0, 7)
    assert request is not None
    forgotten = [(topic.topic_id, topic.partitions) for topic in request.forgotten_topics_data]
    assert forgotten == [(TOPIC_ID, [0])]
    pair.fetching.fetched(FetchResponse(session_id=7), 0, NOW)
    request = pair.fetching.fetch_request(LIMITS.backoff_ms, 7)
    assert request is not None
    assert named(request) == [0]


def replica_of_other(pair: Pair) -> Partition:
    """Return a second partition that broker 2 follows on broker 1."""
    log = pair.directories.get_or_create("other", 0, bytes(reversed(TOPIC_ID)))
    other = Partition(2, log, 0, Isrs())
    other.apply(View(1, 0, 0, (1, 2, 3)))
    return other


@pytest.mark.parametrize(
    "lost",
    [
        FetchResponse(error_code=ErrorCode.FETCH_SESSION_ID_NOT_FOUND),
        FetchResponse(error_code=ErrorCode.INVALID_FETCH_SESSION_EPOCH, session_id=7),
        FetchResponse(session_id=0),
    ],
)
def test_all_partitions_are_named_again_after_a_lost_session(
    pair: Pair, lost: FetchResponse
) -> None:
    responded(pair)
    assert pair.fetching.fetch_request(0, 7) is not None
    pair.fetching.fetched(lost, 0, NOW)
    request = responded(pair)
    assert (request.session_epoch, named(request)) == (0, [0])


def test_all_partitions_are_named_on_a_new_connection(pair: Pair) -> None:
    responded(pair)
    pair.fetching.restart()
    request = responded(pair)
    assert (request.session_id, request.session_epoch, named(request)) == (7, 0, [0])
