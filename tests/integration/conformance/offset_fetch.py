"""OffsetFetch."""

from __future__ import annotations

from typing import Any

from tests.integration.conformance.case import Case

REQUESTED = [{"name": "t", "partitionIndexes": [0, 7]}]


def offsets(code: int) -> list[dict[str, Any]]:
    """The results of the requested partitions."""
    partitions = [
        {
            "partitionIndex": index,
            "committedOffset": -1,
            "committedLeaderEpoch": -1,
            "metadata": "",
            "errorCode": code,
        }
        for index in (0, 7)
    ]
    return [{"name": "t", "partitions": partitions}]


def of_groups(*groups: str) -> dict[str, Any]:
    """A request with several groups."""
    return {"groups": [{"groupId": group, "topics": REQUESTED} for group in groups]}


CASES = (
    Case(
        "offsets in ZooKeeper",
        {"groupId": "g", "topics": REQUESTED},
        {"topics": offsets(3)},
        range(1),
    ),
    Case("no topics in ZooKeeper", {"groupId": "g", "topics": []}, {"topics": []}, range(1)),
    Case(
        "unknown group",
        {"groupId": "{mine}", "topics": REQUESTED},
        {"topics": offsets(0), "errorCode": 0},
        range(1, 8),
    ),
    Case(
        "another coordinator",
        {"groupId": "{other}", "topics": REQUESTED},
        {"topics": [], "errorCode": 16},
        range(1, 8),
    ),
    Case(
        "all committed offsets",
        {"groupId": "{mine}", "topics": None},
        {"topics": [], "errorCode": 0},
        range(2, 8),
    ),
    Case("no groups", {"groups": []}, {"groups": []}, range(8, 10)),
    Case(
        "two groups",
        of_groups("{mine}", "{other}"),
        {
            "groups": [
                {"groupId": "{mine}", "topics": offsets(0), "errorCode": 0},
                {"groupId": "{other}", "topics": [], "errorCode": 16},
            ]
        },
        range(8, 10),
    ),
)
