"""AlterPartitionReassignments."""

from __future__ import annotations

from typing import Any

from tests.integration.conformance.case import Case, Topic

UNKNOWN = "The partition does not exist."


def reassign(replicas: list[int] | None, name: str = "{topic}", partition: int = 0) -> Any:
    """A request for one partition."""
    partitions = [{"partitionIndex": partition, "replicas": replicas}]
    return {"timeoutMs": 5_000, "topics": [{"name": name, "partitions": partitions}]}


def reassigned(code: int, text: str | None, name: str = "{topic}", partition: int = 0) -> Any:
    """A response for one partition."""
    result = {"partitionIndex": partition, "errorCode": code, "errorMessage": text}
    responses = [{"name": name, "partitions": [result]}]
    return {"errorCode": 0, "errorMessage": "", "responses": responses}


CASES = (
    Case("moved", reassign([3]), reassigned(0, None), topic=Topic()),
    Case("more replicas", reassign([1, 2, 3]), reassigned(0, None), topic=Topic()),
    Case(
        "no replicas",
        reassign([]),
        reassigned(39, "Empty replica list specified in partition reassignment."),
        topic=Topic(),
    ),
    Case(
        "duplicate broker",
        reassign([3, 3]),
        reassigned(39, "Duplicate replica ids in…"),
        topic=Topic(),
    ),
    Case(
        "negative broker id", reassign([-3]), reassigned(39, "Invalid broker id in…"), topic=Topic()
    ),
    Case(
        "unknown broker",
        reassign([9]),
        reassigned(39, "Replica assignment has brokers…"),
        topic=Topic(),
    ),
    Case(
        "nothing to cancel",
        reassign(None),
        reassigned(85, "No partition reassignment is in progress."),
        topic=Topic(),
    ),
    Case("unknown topic", reassign([3], "none-{n}"), reassigned(3, UNKNOWN, "none-{n}")),
    Case(
        "unknown partition",
        reassign([3], partition=9),
        reassigned(3, UNKNOWN, partition=9),
        topic=Topic(),
    ),
    Case("empty request", {"timeoutMs": 1, "topics": []}, {"errorCode": 0, "responses": []}),
)
