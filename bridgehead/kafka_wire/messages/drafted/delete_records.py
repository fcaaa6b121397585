"""KIP-201's DeleteRecords, from v1 on: a dry run and error messages. v0 is as shipped.

KIP-201 defines v1; v2 keeps the fields of v1. v2 is flexible, so the fields that the shipped v2
lacks are tagged. A broker therefore also understands clients that send the shipped v2.
"""

from __future__ import annotations

from dataclasses import dataclass

from bridgehead.kafka_wire.messages import delete_records as shipped
from bridgehead.kafka_wire.schema import BOOL, STRING, Array, wire


@dataclass(slots=True)
class DeleteRecordsRequest(shipped.DeleteRecordsRequest):
    """The request."""

    validate_only: bool = wire(BOOL, versions="1")
    validate_only_tagged: bool = wire(BOOL, versions="2+", tag=0, json="validateOnly")

    def __post_init__(self) -> None:
        self.validate_only |= self.validate_only_tagged


@dataclass(slots=True)
class DeleteRecordsPartitionResult(shipped.DeleteRecordsPartitionResult):
    """An element of `topics.partitions` of the response."""

    error_message: str | None = wire(STRING, versions="1", nullable="1", default=None)
    error_message_tagged: str | None = wire(
        STRING, versions="2+", nullable="2+", tag=0, default=None, json="errorMessage"
    )


@dataclass(slots=True)
class DeleteRecordsTopicResult(shipped.DeleteRecordsTopicResult):
    """An element of `topics` of the response."""

    partitions: list[shipped.DeleteRecordsPartitionResult] = wire(
        Array(DeleteRecordsPartitionResult)
    )


@dataclass(slots=True)
class DeleteRecordsResponse(shipped.DeleteRecordsResponse):
    """The response."""

    topics: list[shipped.DeleteRecordsTopicResult] = wire(Array(DeleteRecordsTopicResult))
