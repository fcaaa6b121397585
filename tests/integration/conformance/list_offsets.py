"""ListOffsets."""

from __future__ import annotations

from typing import Any

from tests.integration.conformance.case import ALL, Case, Topic

LATEST, EARLIEST, MAX_TIMESTAMP = -1, -2, -3


def offsets(timestamp: int, name: str = "{topic}", partition: int = 0) -> dict[str, Any]:
    """A request for one partition."""
    return {
        "replicaId": -1,
        "isolationLevel": 0,
        "topics": [
            {
                "name": name,
                "partitions": [
                    {
                        "partitionIndex": partition,
                        "currentLeaderEpoch": -1,
                        "timestamp": timestamp,
                        "maxNumOffsets": 1,
                    }
                ],
            }
        ],
    }


def listed(
    code: int, offset: int, old: list[int], name: str = "{topic}", partition: int = 0
) -> Any:
    """A response for one partition."""
    return {
        "topics": [
            {
                "name": name,
                "partitions": [
                    {
                        "partitionIndex": partition,
                        "errorCode": code,
                        "oldStyleOffsets": old,
                        "timestamp": -1,
                        "offset": offset,
                    }
                ],
            }
        ]
    }


CASES = (
    Case("latest", offsets(LATEST), listed(0, 0, [0]), topic=Topic()),
    Case("earliest", offsets(EARLIEST), listed(0, 0, [0]), topic=Topic()),
    Case("unknown topic", offsets(LATEST, "none-{n}"), listed(3, -1, [], "none-{n}")),
    Case(
        "unknown partition",
        offsets(LATEST, partition=7),
        listed(3, -1, [], partition=7),
        topic=Topic(),
    ),
    Case("empty request", {**offsets(LATEST), "topics": []}, {"topics": []}, ALL),
)
