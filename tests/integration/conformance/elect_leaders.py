"""ElectLeaders."""

from __future__ import annotations

from typing import Any

from tests.integration.conformance.case import Case, Topic


def election(partitions: Any, kind: int = 0, timeout: int = 5_000) -> dict[str, Any]:
    """A request."""
    return {"electionType": kind, "topicPartitions": partitions, "timeoutMs": timeout}


def of(name: str, *partitions: int) -> list[dict[str, Any]]:
    """Partitions of one topic."""
    return [{"topic": name, "partitions": list(partitions)}]


def elected(name: str, *results: tuple[int, int, str | None]) -> dict[str, Any]:
    """A response for one topic."""
    result = [
        {"partitionId": index, "errorCode": code, "errorMessage": text}
        for index, code, text in results
    ]
    return {"errorCode": 0, "replicaElectionResults": [{"topic": name, "partitionResult": result}]}


NOT_NEEDED = "Leader election not needed for topic partition."
UNKNOWN = "The partition does not exist."
CASES = (
    Case(
        "preferred election not needed",
        election(of("{topic}", 0)),
        elected("{topic}", (0, 84, NOT_NEEDED)),
        topic=Topic(replicas=2),
    ),
    Case(
        "unclean election not needed",
        election(of("{topic}", 0), kind=1),
        elected("{topic}", (0, 84, NOT_NEEDED)),
        range(1, 3),
        Topic(replicas=2),
    ),
    Case(
        "timeout of zero",
        election(of("{topic}", 0), timeout=0),
        elected("{topic}", (0, 84, NOT_NEEDED)),
        topic=Topic(),
    ),
    Case("unknown topic", election(of("none-{n}", 0)), elected("none-{n}", (0, 3, UNKNOWN))),
    Case(
        "unknown partition",
        election(of("{topic}", 9)),
        elected("{topic}", (9, 3, UNKNOWN)),
        topic=Topic(),
    ),
    Case("empty request", election([]), {"errorCode": 0, "replicaElectionResults": []}),
    Case(
        "unknown election type",
        election(of("{topic}", 0), kind=5),
        {"errorCode": -1},
        range(1, 3),
        Topic(),
    ),
)
