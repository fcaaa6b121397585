"""Calls that go to the leaders of partitions."""

from __future__ import annotations

import pytest

from bridgehead.admin.calls.records import LATEST, list_offsets
from bridgehead.admin.errors import KafkaError
from bridgehead.admin.requests import Answer
from bridgehead.admin.results import TopicPartition, Try
from bridgehead.kafka_wire.errors import ErrorCode
from bridgehead.kafka_wire.messages.metadata import MetadataResponse, MetadataResponseTopic


@pytest.mark.parametrize(
    "code", [ErrorCode.TOPIC_AUTHORIZATION_FAILED, ErrorCode.INVALID_TOPIC_EXCEPTION]
)
def test_a_topics_error_is_that_of_its_partitions(code: ErrorCode) -> None:
    wanted = TopicPartition("t", 0)
    plan = list_offsets({wanted: LATEST})
    next(plan)
    topics = [MetadataResponseTopic(error_code=code, name="t")]
    plan.send([Try.new_value(Answer(MetadataResponse(topics=topics), 12, False))])
    with pytest.raises(StopIteration) as end:
        plan.send([])
    error = end.value.value[wanted].error
    assert isinstance(error, KafkaError)
    assert error.code is code
