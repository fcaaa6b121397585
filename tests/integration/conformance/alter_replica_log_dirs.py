"""AlterReplicaLogDirs."""

from __future__ import annotations

from typing import Any

from tests.integration.conformance.case import Case, Topic


def moves(path: str, name: str, *partitions: int) -> dict[str, Any]:
    """A request for one topic."""
    return {"dirs": [{"path": path, "topics": [{"name": name, "partitions": list(partitions)}]}]}


def moved(name: str, *codes: tuple[int, int]) -> dict[str, Any]:
    """A response for one topic."""
    partitions = [{"partitionIndex": index, "errorCode": code} for index, code in codes]
    return {"results": [{"topicName": name, "partitions": partitions}]}


CASES = (
    Case("moved", moves("{logs}/b", "{topic}", 0), moved("{topic}", (0, 0)), topic=Topic()),
    Case("already there", moves("{logs}/a", "{topic}", 0), moved("{topic}", (0, 0)), topic=Topic()),
    Case("unknown path", moves("/none", "{topic}", 0), moved("{topic}", (0, 57)), topic=Topic()),
    Case("unknown topic", moves("{logs}/b", "none-{n}", 0), moved("none-{n}", (0, 3))),
    Case(
        "unknown partition",
        moves("{logs}/b", "{topic}", 9),
        moved("{topic}", (9, 3)),
        topic=Topic(),
    ),
    Case("empty request", {"dirs": []}, {"results": []}),
)
