"""DescribeProducers."""

from __future__ import annotations

from typing import Any

from tests.integration.conformance.case import Case, Table, Topic


def producers(name: str, *partitions: int) -> dict[str, Any]:
    """A request for one topic."""
    return {"topics": [{"name": name, "partitionIndexes": list(partitions)}]}


def nobody(name: str, *codes: tuple[int, str | None]) -> dict[str, Any]:
    """An answer for one topic."""
    partitions = [
        {"errorCode": code, "errorMessage": text, "activeProducers": []} for code, text in codes
    ]
    return {"topics": [{"name": name, "partitions": partitions}]}


TABLE = Table(
    61,
    "3.1",
    (
        Case("nobody", producers("{topic}", 0), nobody("{topic}", (0, None)), topic=Topic()),
        Case(
            "some unknown",
            producers("{topic}", 0, 9),
            nobody("{topic}", (0, None), (3, None)),
            topic=Topic(),
        ),
        Case(
            "unknown",
            producers("none-{n}", 0),
            nobody("none-{n}", (3, "This server does not host this topic-partition.")),
        ),
        Case("illegal", producers("a/b", 0), nobody("a/b", (17, "Topic name is invalid: 'a/b'…"))),
        Case("nothing asked", {"topics": []}, {"topics": []}),
    ),
)
