"""DeleteTopics, key 20, versions 0 to 6; flexible from 4.

Version notes:
    1: The response adds `throttle_time_ms`.
    2: Same fields as 1.
    3: Same fields as 2.
    4: First flexible version.
    5: The response adds `responses.error_message`.
    6: The request adds `topics`; drops `topic_names`. The response adds `responses.topic_id`;
       `responses.name` may be null.
"""

from __future__ import annotations

from dataclasses import dataclass

from bridgehead.kafka_wire.schema import INT16, INT32, STRING, UUID, Array, wire


@dataclass(slots=True)
class DeleteTopicState:
    """An element of `topics` of the request. Versions 6+."""

    name: str | None = wire(STRING, nullable="6+", default=None)
    topic_id: bytes = wire(UUID)


@dataclass(slots=True)
class DeleteTopicsRequest:
    """The request."""

    topics: list[DeleteTopicState] = wire(Array(DeleteTopicState), versions="6+")
    topic_names: list[str] = wire(Array(STRING), versions="0-5")
    timeout_ms: int = wire(INT32)


@dataclass(slots=True)
class DeletableTopicResult:
    """An element of `responses` of the response."""

    name: str | None = wire(STRING, nullable="6+")
    topic_id: bytes = wire(UUID, versions="6+")
    error_code: int = wire(INT16)
    error_message: str | None = wire(STRING, versions="5+", nullable="5+", default=None)


@dataclass(slots=True)
class DeleteTopicsResponse:
    """The response."""

    throttle_time_ms: int = wire(INT32, versions="1+")
    responses: list[DeletableTopicResult] = wire(Array(DeletableTopicResult))
