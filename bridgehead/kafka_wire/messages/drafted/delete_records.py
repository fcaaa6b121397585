"""DeleteRecords v1 of KIP-201: a dry run, and error messages. Other versions are as shipped."""

from __future__ import annotations

from dataclasses import dataclass

from bridgehead.kafka_wire.messages import delete_records as shipped
from bridgehead.kafka_wire.schema import BOOL, STRING, Array, wire


@dataclass(slots=True)
class DeleteRecordsRequest(shipped.DeleteRecordsRequest):
    """The request."""

    validate_only: bool = wire(BOOL, versions="1")


@dataclass(slots=True)
class DeleteRecordsPartitionResult(shipped.DeleteRecordsPartitionResult):
    """An element of `topics.partitions` of the response."""

    error_message: str | None = wire(STRING, versions="1", nullable="1", default=None)


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
