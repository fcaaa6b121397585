"""Incremental fetch sessions: what a response contains, and which requests are rejected."""

from __future__ import annotations

import itertools

import pytest

from bridgehead.kafka_wire.errors import ApiError, ErrorCode
from bridgehead.kafka_wire.messages.fetch import (
    FetchPartition,
    FetchRequest,
    FetchTopic,
    ForgottenTopic,
    PartitionData,
)
from broker_proxy.apis.records import fetch_sessions as fetch_sessions_module
from broker_proxy.apis.records.fetch_sessions import Context, FetchSessions, TopicPartition

VERSION = 12


def sessions(limit: int = 10) -> FetchSessions:
    ids = itertools.count(1)
    return FetchSessions(limit, lambda: next(ids))


def request(
    session_id: int = 0, epoch: int = 0, *partitions: int, forgotten: tuple[int, ...] = ()
) -> FetchRequest:
    return FetchRequest(
        max_wait_ms=0,
        min_bytes=0,
        session_id=session_id,
        session_epoch=epoch,
        topics=[
            FetchTopic(
                topic="t",
                partitions=[
                    FetchPartition(partition=partition, fetch_offset=0, partition_max_bytes=1)
                    for partition in partitions
                ],
            )
        ],
        forgotten_topics_data=[ForgottenTopic(topic="t", partitions=list(forgotten))],
    )


async def response_to(
    context: Context, mark: int = 5, records: bytes = b""
) -> tuple[int, list[int]]:
    """Finish a request; return its session id and the partitions in the response."""
    news = []
    for key, _ in context.wanted:
        data = PartitionData(
            partition_index=key.partition, high_watermark=mark, last_stable_offset=mark,
            log_start_offset=0, records=records,
        )  # fmt: skip
        if context.has_news(key, data):
            news.append((key, data))
    return await context.finish(news), [key.partition for key, _ in news]


async def test_an_incremental_response_has_only_partitions_with_news() -> None:
    fetch_sessions = sessions()
    assert await response_to(await fetch_sessions.open(request(0, 0, 0, 1), VERSION, 0)) == (
        1,
        [0, 1],
    )
    assert await response_to(await fetch_sessions.open(request(1, 1), VERSION, 0)) == (1, [])
    assert await response_to(await fetch_sessions.open(request(1, 2), VERSION, 0), mark=6) == (
        1,
        [0, 1],
    )
    assert await response_to(
        await fetch_sessions.open(request(1, 3), VERSION, 0), mark=6, records=b"x"
    ) == (
        1,
        [0, 1],
    )
    assert await response_to(await fetch_sessions.open(request(1, 4, 2), VERSION, 0), mark=6) == (
        1,
        [2],
    )
    assert await response_to(
        await fetch_sessions.open(request(1, 5, forgotten=(0, 1)), VERSION, 0), mark=7
    ) == (1, [2])


async def test_a_partition_with_an_error_is_also_in_the_next_response() -> None:
    fetch_sessions = sessions()
    context = await fetch_sessions.open(request(0, 0, 0), VERSION, 0)
    key = TopicPartition(bytes(16), "t", 0)
    failed = PartitionData(
        partition_index=0, error_code=ErrorCode.NOT_LEADER_OR_FOLLOWER, high_watermark=5,
        last_stable_offset=5, log_start_offset=0, records=b"",
    )  # fmt: skip
    assert await context.finish([(key, failed)]) == 1
    assert await response_to(await fetch_sessions.open(request(1, 1), VERSION, 0)) == (1, [0])


async def test_wrong_ids_epochs_and_versions_are_rejected() -> None:
    fetch_sessions = sessions()
    await response_to(await fetch_sessions.open(request(0, 0, 0), VERSION, 0))
    for wrong, version, error in (
        (request(7, 1), VERSION, ErrorCode.FETCH_SESSION_ID_NOT_FOUND),
        (request(1, 2), VERSION, ErrorCode.INVALID_FETCH_SESSION_EPOCH),
        (request(1, 1), 13, ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR),
    ):
        with pytest.raises(ApiError) as rejected:
            await fetch_sessions.open(wrong, version, 0)
        assert rejected.value.error is error


async def test_a_session_ends_when_it_has_no_partition_or_gets_the_final_epoch() -> None:
    fetch_sessions = sessions()
    await response_to(await fetch_sessions.open(request(0, 0, 0), VERSION, 0))
    assert await response_to(
        await fetch_sessions.open(request(1, 1, forgotten=(0,)), VERSION, 0)
    ) == (0, [])
    assert len(fetch_sessions) == 0
    await response_to(await fetch_sessions.open(request(0, 0, 0), VERSION, 0))
    assert await response_to(await fetch_sessions.open(request(2, -1, 0), VERSION, 0)) == (0, [0])
    assert len(fetch_sessions) == 0


async def test_the_number_of_sessions_is_limited() -> None:
    fetch_sessions = sessions(limit=2)
    for session in (1, 2):
        assert await response_to(await fetch_sessions.open(request(0, 0, 0), VERSION, 0)) == (
            session,
            [0],
        )
    assert await response_to(await fetch_sessions.open(request(0, 0, 0), VERSION, 120_000)) == (
        0,
        [0],
    )
    assert await response_to(await fetch_sessions.open(request(0, 0, 0), VERSION, 120_001)) == (
        3,
        [0],
    )
    assert len(fetch_sessions) == 2


async def test_the_partitions_of_all_sessions_are_limited(monkeypatch: pytest.MonkeyPatch) -> None:
    """A client without a session, or whose session ended, sends full requests."""
    monkeypatch.setattr(fetch_sessions_module, "PARTITIONS_MAX", 5)
    fetch_sessions = sessions()

    async def full_request() -> int:
        context = await fetch_sessions.open(request(0, 0, 0, 1, 2), VERSION, 0)
        session_id, _ = await response_to(context)
        return session_id

    assert await full_request() == 1
    assert await full_request() == 0
    await response_to(await fetch_sessions.open(request(1, 1, 3, 4), VERSION, 0))
    with pytest.raises(ApiError) as full:
        await fetch_sessions.open(request(1, 2, 5), VERSION, 0)
    assert full.value.error is ErrorCode.FETCH_SESSION_ID_NOT_FOUND
    assert len(fetch_sessions) == 0
    assert await full_request() == 2
