"""CreatePartitions."""

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


CASES = (
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
