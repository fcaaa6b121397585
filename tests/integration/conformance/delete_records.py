"""DeleteRecords."""

from __future__ import annotations

from typing import Any

from tests.integration.conformance.case import Case, Topic


def deletion(offset: int, name: str = "{topic}", partition: int = 0) -> dict[str, Any]:
    """A request for one partition."""
    partitions = [{"partitionIndex": partition, "offset": offset}]
    return {"topics": [{"name": name, "partitions": partitions}], "timeoutMs": 5_000}


def deleted(code: int, low: int, name: str = "{topic}", partition: int = 0) -> dict[str, Any]:
    """A response for one partition."""
    partitions = [{"partitionIndex": partition, "lowWatermark": low, "errorCode": code}]
    return {"topics": [{"name": name, "partitions": partitions}]}


CASES = (
    Case("to the end", deletion(-1), deleted(0, 0), topic=Topic(replicas=3)),
    Case("to the beginning", deletion(0), deleted(0, 0), topic=Topic()),
    Case("beyond the end", deletion(1), deleted(1, -1), topic=Topic()),
    Case("invalid offset", deletion(-2), deleted(1, -1), topic=Topic()),
    Case("unknown topic", deletion(0, "none-{n}"), deleted(3, -1, "none-{n}")),
    Case("unknown partition", deletion(0, partition=7), deleted(3, -1, partition=7), topic=Topic()),
    Case(
        "compacted topic",
        deletion(0),
        deleted(44, -1),
        topic=Topic(configs={"cleanup.policy": "compact"}),
    ),
    Case(
        "internal topic", deletion(0, "__consumer_offsets"), deleted(17, -1, "__consumer_offsets")
    ),
    Case("empty request", {"topics": [], "timeoutMs": 1}, {"topics": []}),
)
