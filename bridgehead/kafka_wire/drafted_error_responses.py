"""The answer when a whole request of a drafted API fails."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from bridgehead.kafka_wire.dialects import ALTER_TOPICS
from bridgehead.kafka_wire.errors import ErrorCode
from bridgehead.kafka_wire.messages.drafted import alter_topics, envelope


def _envelope(request: Any, version: int, error: ErrorCode, message: str | None) -> Any:
    return envelope.EnvelopeResponse(error_code=error)


def _alter_topics(request: Any, version: int, error: ErrorCode, message: str | None) -> Any:
    names = dict.fromkeys(topic.topic for topic in request.topics)
    results = [alter_topics.AlterTopicResult(topic=name, error_code=error) for name in names]
    return alter_topics.AlterTopicsResponse(topics=results)


DRAFTED_ERROR_RESPONSES: Final[Mapping[int, Any]] = {
    58: _envelope,
    ALTER_TOPICS: _alter_topics,
}
