"""OffsetFetch."""

from __future__ import annotations

from typing import Any

from tests.integration.conformance.case import Case, Table

ASKED = [{"name": "t", "partitionIndexes": [0, 7]}]


def offsets(code: int) -> list[dict[str, Any]]:
    """What is told of the partitions asked for."""
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
    """A request of the versions that ask for many."""
    return {"groups": [{"groupId": group, "topics": ASKED} for group in groups]}


TABLE = Table(
    9,
    "3.20",
    (
        Case("of ZooKeeper", {"groupId": "g", "topics": ASKED}, {"topics": offsets(3)}, range(1)),
        Case("no topics", {"groupId": "g", "topics": []}, {"topics": []}, range(1)),
        Case(
            "not met",
            {"groupId": "{mine}", "topics": ASKED},
            {"topics": offsets(0), "errorCode": 0},
            range(1, 8),
        ),
        Case(
            "elsewhere",
            {"groupId": "{other}", "topics": ASKED},
            {"topics": [], "errorCode": 16},
            range(1, 8),
        ),
        Case(
            "all that is committed",
            {"groupId": "{mine}", "topics": None},
            {"topics": [], "errorCode": 0},
            range(2, 8),
        ),
        Case("no groups", {"groups": []}, {"groups": []}, range(8, 10)),
        Case(
            "many groups",
            of_groups("{mine}", "{other}"),
            {
                "groups": [
                    {"groupId": "{mine}", "topics": offsets(0), "errorCode": 0},
                    {"groupId": "{other}", "topics": [], "errorCode": 16},
                ]
            },
            range(8, 10),
        ),
    ),
)
