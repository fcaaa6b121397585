"""Calls that go to the leaders of partitions."""

from __future__ import annotations

from typing import Any

import pytest

from bridgehead.admin.calls.records import LATEST, list_offsets
from bridgehead.admin.errors import KafkaError, KafkaTimeoutError
from bridgehead.admin.requests import BrokerResponse, Plan, Wait
from bridgehead.admin.results import TopicPartition, Try
from bridgehead.kafka_wire.errors import ErrorCode
from bridgehead.kafka_wire.messages.list_offsets import (
    ListOffsetsPartitionResponse,
    ListOffsetsResponse,
    ListOffsetsTopicResponse,
)
from bridgehead.kafka_wire.messages.metadata import (
    MetadataResponse,
    MetadataResponsePartition,
    MetadataResponseTopic,
)

A, B = TopicPartition("t", 0), TopicPartition("t", 1)
METADATA = MetadataResponse(
    topics=[
        MetadataResponseTopic(
            name="t",
            partitions=[MetadataResponsePartition(partition_index=n, leader_id=1) for n in (0, 1)],
        )
    ]
)


def after_first_response(code: ErrorCode) -> tuple[Plan[Any], Any]:
    """Answer ListOffsets: `code` for A, offset 5 for B. Return the call and its next step."""
    plan = list_offsets({A: LATEST, B: LATEST})
    next(plan)
    plan.send([Try.new_value(BrokerResponse(METADATA, 12))])
    partitions = [
        ListOffsetsPartitionResponse(0, error_code=code),
        ListOffsetsPartitionResponse(1, error_code=0, offset=5),
    ]
    response = ListOffsetsResponse(topics=[ListOffsetsTopicResponse("t", partitions)])
    return plan, plan.send([Try.new_value(BrokerResponse(response, 7))])


@pytest.mark.parametrize(
    "code",
    [
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ErrorCode.OFFSET_NOT_AVAILABLE,
        ErrorCode.KAFKA_STORAGE_ERROR,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    ],
)
def test_a_partition_with_a_temporary_error_is_requested_again(code: ErrorCode) -> None:
    """A new leader answers OFFSET_NOT_AVAILABLE until it knows its high watermark.

    A leader that has not yet received a new partition answers UNKNOWN_TOPIC_OR_PARTITION.
    """
    _, step = after_first_response(code)
    assert isinstance(step, Wait)


def test_a_partition_that_the_metadata_lacks_gets_its_error_at_once() -> None:
    plan = list_offsets({A: LATEST})
    next(plan)
    plan.send([Try.new_value(BrokerResponse(MetadataResponse(topics=[]), 12))])
    with pytest.raises(StopIteration) as end:
        plan.send([])
    assert end.value.value[A].error.code is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def test_results_are_kept_if_metadata_cannot_be_fetched_again() -> None:
    plan, _ = after_first_response(ErrorCode.NOT_LEADER_OR_FOLLOWER)
    plan.send([])  # after the pause
    with pytest.raises(StopIteration) as end:
        plan.send([Try.new_error(KafkaTimeoutError("late", sent=True))])
    results = end.value.value
    assert results[B].get().offset == 5
    assert results[A].error.code is ErrorCode.NOT_LEADER_OR_FOLLOWER


@pytest.mark.parametrize(
    "code", [ErrorCode.TOPIC_AUTHORIZATION_FAILED, ErrorCode.INVALID_TOPIC_EXCEPTION]
)
def test_the_error_of_a_topic_is_the_error_of_its_partitions(code: ErrorCode) -> None:
    wanted = TopicPartition("t", 0)
    plan = list_offsets({wanted: LATEST})
    next(plan)
    topics = [MetadataResponseTopic(error_code=code, name="t")]
    plan.send([Try.new_value(BrokerResponse(MetadataResponse(topics=topics), 12, False))])
    with pytest.raises(StopIteration) as end:
        plan.send([])
    error = end.value.value[wanted].error
    assert isinstance(error, KafkaError)
    assert error.code is code
