"""DescribeProducers."""

from __future__ import annotations

from typing import Any

from tests.integration.conformance.case import Case, Topic


def producers(name: str, *partitions: int) -> dict[str, Any]:
    """A request for one topic."""
    return {"topics": [{"name": name, "partitionIndexes": list(partitions)}]}


def no_producers(name: str, *codes: tuple[int, str | None]) -> dict[str, Any]:
    """A response for one topic."""
    partitions: list[dict[str, Any]] = [
        {"errorCode": code, "errorMessage": text, "activeProducers": []} for code, text in codes
    ]
    return {"topics": [{"name": name, "partitions": partitions}]}


CASES = (
    Case(
        "no producers", producers("{topic}", 0), no_producers("{topic}", (0, None)), topic=Topic()
    ),
    Case(
        "one unknown partition",
        producers("{topic}", 0, 9),
        no_producers("{topic}", (0, None), (3, None)),
        topic=Topic(),
    ),
    Case(
        "unknown topic",
        producers("none-{n}", 0),
        no_producers("none-{n}", (3, "This server does not host this topic-partition.")),
    ),
    Case(
        "illegal name",
        producers("a/b", 0),
        no_producers("a/b", (17, "Topic name is invalid: 'a/b'…")),
    ),
    Case("empty request", {"topics": []}, {"topics": []}),
)
