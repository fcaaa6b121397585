"""DeleteTopics v2 of KIP-201: a dry run, and error messages. Other versions are as shipped."""

from __future__ import annotations

from dataclasses import dataclass

from bridgehead.kafka_wire.messages import delete_topics as shipped
from bridgehead.kafka_wire.schema import BOOL, STRING, Array, wire


@dataclass(slots=True)
class DeleteTopicsRequest(shipped.DeleteTopicsRequest):
    """The request."""

    validate_only: bool = wire(BOOL, versions="2")


@dataclass(slots=True)
class DeletableTopicResult(shipped.DeletableTopicResult):
    """An element of `responses` of the response."""

    error_message: str | None = wire(STRING, versions="2,5+", nullable="2,5+", default=None)


@dataclass(slots=True)
class DeleteTopicsResponse(shipped.DeleteTopicsResponse):
    """The response."""

    responses: list[shipped.DeletableTopicResult] = wire(Array(DeletableTopicResult))
