"""KIP-201's DeleteTopics, from v2 on: a dry run and error messages. v0 and v1 are as shipped.

KIP-201 defines v2; later versions keep its fields. From v4 on, the first flexible version, the
fields that the shipped version lacks are tagged, so a broker also understands shipped clients.
"""

from __future__ import annotations

from dataclasses import dataclass

from bridgehead.kafka_wire.messages import delete_topics as shipped
from bridgehead.kafka_wire.schema import BOOL, STRING, Array, wire


@dataclass(slots=True)
class DeleteTopicsRequest(shipped.DeleteTopicsRequest):
    """The request."""

    validate_only: bool = wire(BOOL, versions="2-3")
    validate_only_tagged: bool = wire(BOOL, versions="4+", tag=0, json="validateOnly")

    def __post_init__(self) -> None:
        self.validate_only |= self.validate_only_tagged


@dataclass(slots=True)
class DeletableTopicResult(shipped.DeletableTopicResult):
    """An element of `responses` of the response."""

    error_message: str | None = wire(STRING, versions="2-3,5+", nullable="2-3,5+", default=None)
    error_message_tagged: str | None = wire(
        STRING, versions="4", nullable="4", tag=0, default=None, json="errorMessage"
    )


@dataclass(slots=True)
class DeleteTopicsResponse(shipped.DeleteTopicsResponse):
    """The response."""

    responses: list[shipped.DeletableTopicResult] = wire(Array(DeletableTopicResult))
