"""Cases of offsets, records and log directories."""

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


LIST_OFFSETS = (
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


def deletion(offset: int, name: str = "{topic}", partition: int = 0) -> dict[str, Any]:
    """A request for one partition."""
    partitions = [{"partitionIndex": partition, "offset": offset}]
    return {"topics": [{"name": name, "partitions": partitions}], "timeoutMs": 5_000}


def deleted(code: int, low: int, name: str = "{topic}", partition: int = 0) -> dict[str, Any]:
    """A response for one partition."""
    partitions = [{"partitionIndex": partition, "lowWatermark": low, "errorCode": code}]
    return {"topics": [{"name": name, "partitions": partitions}]}


DELETE_RECORDS = (
    Case("to the end", deletion(-1), deleted(0, 0), topic=Topic(replicas=3)),
    Case("to the beginning", deletion(0), deleted(0, 0), topic=Topic()),
    Case("beyond the end", deletion(1), deleted(1, -1), topic=Topic()),
    Case("invalid offset", deletion(-2), deleted(1, -1), topic=Topic()),
    Case("unknown topic", deletion(0, "none-{n}"), deleted(3, -1, "none-{n}")),
    Case("unknown partition", deletion(0, partition=7), deleted(3, -1, partition=7), topic=Topic()),
    Case(
        "compacted topic",
        deletion(0),
        deleted(44, -1),
        topic=Topic(configs={"cleanup.policy": "compact"}),
    ),
    Case(
        "internal topic", deletion(0, "__consumer_offsets"), deleted(17, -1, "__consumer_offsets")
    ),
    Case("empty request", {"topics": [], "timeoutMs": 1}, {"topics": []}),
)

DIRECTORIES = [{"errorCode": 0, "logDir": path} for path in ("{logs}/a", "{logs}/b")]

DESCRIBE_LOG_DIRS = (
    Case(
        "one topic",
        {"topics": [{"topic": "{topic}", "partitions": [0, 1, 9]}]},
        {
            "errorCode": 0,
            "results": [
                {
                    "logDir": "{logs}/a",
                    "topics": [
                        {
                            "name": "{topic}",
                            "partitions": [
                                {"partitionIndex": index, "isFutureKey": False} for index in (0, 1)
                            ],
                        }
                    ],
                },
                {"logDir": "{logs}/b", "topics": []},
            ],
        },
        topic=Topic(partitions=2, replicas=2),
    ),
    Case("empty request", {"topics": []}, {"results": DIRECTORIES}),
    Case(
        "unknown topic",
        {"topics": [{"topic": "none-{n}", "partitions": [0]}]},
        {"errorCode": 0, "results": DIRECTORIES},
    ),
)


def moves(path: str, name: str, *partitions: int) -> dict[str, Any]:
    """A request for one topic."""
    return {"dirs": [{"path": path, "topics": [{"name": name, "partitions": list(partitions)}]}]}


def moved(name: str, *codes: tuple[int, int]) -> dict[str, Any]:
    """A response for one topic."""
    partitions = [{"partitionIndex": index, "errorCode": code} for index, code in codes]
    return {"results": [{"topicName": name, "partitions": partitions}]}


ALTER_REPLICA_LOG_DIRS = (
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
