"""Cases of transactions and producers."""

from __future__ import annotations

from typing import Any

from tests.integration.conformance.case import Case, Topic

LIST_TRANSACTIONS = (
    Case(
        "all transactions", {}, {"errorCode": 0, "unknownStateFilters": [], "transactionStates": []}
    ),
    Case(
        "unknown states",
        {"stateFilters": ["Ongoing", "ongoing", "bogus"]},
        {"errorCode": 0, "unknownStateFilters": ["ongoing", "bogus"], "transactionStates": []},
    ),
    Case(
        "filtered by producer",
        {"producerIdFilters": [1]},
        {"errorCode": 0, "transactionStates": []},
    ),
)

DESCRIBE_TRANSACTIONS = (
    Case(
        "unknown ids",
        {"transactionalIds": ["{mine}", "{other}", ""]},
        {
            "transactionStates": [
                {"transactionalId": "{mine}", "errorCode": 105, "topics": []},
                {"transactionalId": "{other}", "errorCode": 16, "topics": []},
                {"transactionalId": "", "errorCode": 42, "topics": []},
            ]
        },
    ),
    Case("empty request", {"transactionalIds": []}, {"transactionStates": []}),
)


def producers(name: str, *partitions: int) -> dict[str, Any]:
    """A request for one topic."""
    return {"topics": [{"name": name, "partitionIndexes": list(partitions)}]}


def no_producers(name: str, *codes: tuple[int, str | None]) -> dict[str, Any]:
    """A response for one topic."""
    partitions: list[dict[str, Any]] = [
        {"errorCode": code, "errorMessage": text, "activeProducers": []} for code, text in codes
    ]
    return {"topics": [{"name": name, "partitions": partitions}]}


DESCRIBE_PRODUCERS = (
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
