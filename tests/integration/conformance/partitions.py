"""Cases of partitions, their replicas and leaders."""

from __future__ import annotations

from typing import Any

from tests.integration.conformance.case import Case, Topic

TWO = Topic(partitions=2, replicas=2)


def body(
    count: int,
    assignments: list[list[int]] | None = None,
    name: str = "{topic}",
    dry: bool = False,
    timeout: int = 10_000,
) -> dict[str, Any]:
    """A request with one topic."""
    listed = (
        None if assignments is None else [{"brokerIds": assignment} for assignment in assignments]
    )
    return {
        "topics": [{"name": name, "count": count, "assignments": listed}],
        "timeoutMs": timeout,
        "validateOnly": dry,
    }


def result(code: int, text: str | None, name: str = "{topic}") -> dict[str, Any]:
    """A response with one topic."""
    return {"results": [{"name": name, "errorCode": code, "errorMessage": text}]}


CREATE_PARTITIONS = (
    Case("more partitions", body(4), result(0, None), topic=TWO),
    Case("with an assignment", body(3, [[1, 2]]), result(0, None), topic=TWO),
    Case("dry run", body(3, dry=True), result(0, None), topic=TWO),
    Case("timeout of zero", body(3, timeout=0), result(7, None), topic=TWO),
    Case("empty request", {"topics": [], "timeoutMs": 1, "validateOnly": False}, {"results": []}),
    Case(
        "duplicate topic",
        {**body(3), "topics": body(3)["topics"] * 2},
        result(42, "Duplicate topic in request."),
        topic=TWO,
    ),
    Case(
        "unknown topic",
        body(3, name="none-{n}"),
        result(3, "The topic 'none-{n}' does not exist.", "none-{n}"),
    ),
    Case("the same count", body(2), result(37, "Topic already has 2 partitions."), topic=TWO),
    Case(
        "fewer partitions",
        body(1),
        result(37, "Topic currently has 2 partitions, which is higher than the requested 1."),
        topic=TWO,
    ),
    Case(
        "unknown broker",
        body(3, [[9, 1]]),
        result(39, "Unknown broker(s) in replica assignment: 9."),
        topic=TWO,
    ),
    Case(
        "too few assignments",
        body(4, [[1, 2]]),
        result(39, "Increasing the number of partitions by 2 but 1 assignments provided."),
        topic=TWO,
    ),
    Case(
        "no replicas",
        body(3, [[]]),
        result(39, "Cannot have replication factor of 0 for partition id 2."),
        topic=TWO,
    ),
    Case(
        "duplicate broker",
        body(3, [[1, 1]]),
        result(39, "Duplicate brokers not allowed in replica assignment: 1, 1 for partition id 2."),
        topic=TWO,
    ),
    Case(
        "another replication factor",
        body(3, [[1]]),
        result(
            39,
            "Inconsistent replication factor between partitions, partition 0 has 2 while "
            "partitions [2] have replication factors [1], respectively.",
        ),
        topic=TWO,
    ),
)

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


ALTER_PARTITION_REASSIGNMENTS = (
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

LIST_PARTITION_REASSIGNMENTS = (
    Case(
        "no reassignment",
        {"timeoutMs": 1, "topics": [{"name": "{topic}", "partitionIndexes": [0, 9]}]},
        {"errorCode": 0, "errorMessage": "", "topics": []},
        topic=Topic(),
    ),
    Case(
        "unknown topic",
        {"timeoutMs": 1, "topics": [{"name": "none-{n}", "partitionIndexes": [0]}]},
        {"errorCode": 0, "errorMessage": "", "topics": []},
    ),
    Case("empty request", {"timeoutMs": 1, "topics": []}, {"errorCode": 0, "topics": []}),
)


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

ELECT_LEADERS = (
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
