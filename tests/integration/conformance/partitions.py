"""What leaders answer of empty logs: offsets, records, producers and log directories."""

from __future__ import annotations

from typing import Any, Final

from tests.integration.conformance.case import ALL, Case, Table, Topic

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


def found(code: int, offset: int, old: list[int], name: str = "{topic}", partition: int = 0) -> Any:
    """An answer for one partition."""
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


LIST_OFFSETS = Table(
    2,
    "3.18",
    (
        Case("latest", offsets(LATEST), found(0, 0, [0]), topic=Topic()),
        Case("earliest", offsets(EARLIEST), found(0, 0, [0]), topic=Topic()),
        Case("unknown", offsets(LATEST, "none-{n}"), found(3, -1, [], "none-{n}")),
        Case(
            "unknown partition",
            offsets(LATEST, partition=7),
            found(3, -1, [], partition=7),
            topic=Topic(),
        ),
        Case("nothing asked", {**offsets(LATEST), "topics": []}, {"topics": []}, ALL),
    ),
)


def deletion(offset: int, name: str = "{topic}", partition: int = 0) -> dict[str, Any]:
    """A request for one partition."""
    partitions = [{"partitionIndex": partition, "offset": offset}]
    return {"topics": [{"name": name, "partitions": partitions}], "timeoutMs": 5_000}


def deleted(code: int, low: int, name: str = "{topic}", partition: int = 0) -> dict[str, Any]:
    """An answer for one partition."""
    partitions = [{"partitionIndex": partition, "lowWatermark": low, "errorCode": code}]
    return {"topics": [{"name": name, "partitions": partitions}]}


DELETE_RECORDS = Table(
    21,
    "3.18",
    (
        Case("to the end", deletion(-1), deleted(0, 0), topic=Topic(replicas=3)),
        Case("to the beginning", deletion(0), deleted(0, 0), topic=Topic()),
        Case("beyond the end", deletion(1), deleted(1, -1), topic=Topic()),
        Case("a strange offset", deletion(-2), deleted(1, -1), topic=Topic()),
        Case("unknown", deletion(0, "none-{n}"), deleted(3, -1, "none-{n}")),
        Case(
            "unknown partition",
            deletion(0, partition=7),
            deleted(3, -1, partition=7),
            topic=Topic(),
        ),
        Case(
            "compacted",
            deletion(0),
            deleted(44, -1),
            topic=Topic(configs={"cleanup.policy": "compact"}),
        ),
        Case("internal", deletion(0, "__consumer_offsets"), deleted(17, -1, "__consumer_offsets")),
        Case("nothing asked", {"topics": [], "timeoutMs": 1}, {"topics": []}),
    ),
)


def producers(name: str, *partitions: int) -> dict[str, Any]:
    """A request for one topic."""
    return {"topics": [{"name": name, "partitionIndexes": list(partitions)}]}


def nobody(name: str, *codes: tuple[int, str | None]) -> dict[str, Any]:
    """An answer for one topic."""
    partitions = [
        {"errorCode": code, "errorMessage": text, "activeProducers": []} for code, text in codes
    ]
    return {"topics": [{"name": name, "partitions": partitions}]}


DESCRIBE_PRODUCERS = Table(
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


def moves(path: str, name: str, *partitions: int) -> dict[str, Any]:
    """A request for one topic."""
    return {"dirs": [{"path": path, "topics": [{"name": name, "partitions": list(partitions)}]}]}


def moved(name: str, *codes: tuple[int, int]) -> dict[str, Any]:
    """An answer for one topic."""
    partitions = [{"partitionIndex": index, "errorCode": code} for index, code in codes]
    return {"results": [{"topicName": name, "partitions": partitions}]}


ALTER_REPLICA_LOG_DIRS = Table(
    34,
    "3.1",
    (
        Case("moved", moves("/logs-b", "{topic}", 0), moved("{topic}", (0, 0)), topic=Topic()),
        Case("not moved", moves("/logs-a", "{topic}", 0), moved("{topic}", (0, 0)), topic=Topic()),
        Case("nowhere", moves("/none", "{topic}", 0), moved("{topic}", (0, 57)), topic=Topic()),
        Case("unknown", moves("/logs-b", "none-{n}", 0), moved("none-{n}", (0, 3))),
        Case(
            "unknown partition",
            moves("/logs-b", "{topic}", 9),
            moved("{topic}", (9, 3)),
            topic=Topic(),
        ),
        Case("nothing asked", {"dirs": []}, {"results": []}),
    ),
)
DIRECTORIES = [{"errorCode": 0, "logDir": path} for path in ("/logs-a", "/logs-b")]
DESCRIBE_LOG_DIRS = Table(
    35,
    "3.1",
    (
        Case(
            "a topic",
            {"topics": [{"topic": "{topic}", "partitions": [0, 1, 9]}]},
            {
                "errorCode": 0,
                "results": [
                    {
                        "logDir": "/logs-a",
                        "topics": [
                            {
                                "name": "{topic}",
                                "partitions": [
                                    {"partitionIndex": index, "isFutureKey": False}
                                    for index in (0, 1)
                                ],
                            }
                        ],
                    },
                    {"logDir": "/logs-b", "topics": []},
                ],
            },
            topic=Topic(partitions=2, replicas=2),
        ),
        Case("nothing asked", {"topics": []}, {"results": DIRECTORIES}),
        Case(
            "unknown",
            {"topics": [{"topic": "none-{n}", "partitions": [0]}]},
            {"errorCode": 0, "results": DIRECTORIES},
        ),
    ),
)


def election(partitions: Any, kind: int = 0, timeout: int = 5_000) -> dict[str, Any]:
    """A request."""
    return {"electionType": kind, "topicPartitions": partitions, "timeoutMs": timeout}


def of(name: str, *partitions: int) -> list[dict[str, Any]]:
    """Partitions of one topic."""
    return [{"topic": name, "partitions": list(partitions)}]


def elected(name: str, *results: tuple[int, int, str | None]) -> dict[str, Any]:
    """An answer for one topic."""
    told = [
        {"partitionId": index, "errorCode": code, "errorMessage": text}
        for index, code, text in results
    ]
    return {"errorCode": 0, "replicaElectionResults": [{"topic": name, "partitionResult": told}]}


NOT_NEEDED = "Leader election not needed for topic partition."
UNKNOWN = "The partition does not exist."
ELECT_LEADERS = Table(
    43,
    "3.13",
    (
        Case(
            "not needed",
            election(of("{topic}", 0)),
            elected("{topic}", (0, 84, NOT_NEEDED)),
            topic=Topic(replicas=2),
        ),
        Case(
            "unclean, not needed",
            election(of("{topic}", 0), kind=1),
            elected("{topic}", (0, 84, NOT_NEEDED)),
            range(1, 3),
            Topic(replicas=2),
        ),
        Case(
            "no time",
            election(of("{topic}", 0), timeout=0),
            elected("{topic}", (0, 84, NOT_NEEDED)),
            topic=Topic(),
        ),
        Case("unknown", election(of("none-{n}", 0)), elected("none-{n}", (0, 3, UNKNOWN))),
        Case(
            "unknown partition",
            election(of("{topic}", 9)),
            elected("{topic}", (9, 3, UNKNOWN)),
            topic=Topic(),
        ),
        Case("nothing asked", election([]), {"errorCode": 0, "replicaElectionResults": []}),
        Case(
            "unknown type",
            election(of("{topic}", 0), kind=5),
            {"errorCode": -1},
            range(1, 3),
            Topic(),
        ),
    ),
)


def reassign(replicas: list[int] | None, name: str = "{topic}", partition: int = 0) -> Any:
    """A request for one partition."""
    partitions = [{"partitionIndex": partition, "replicas": replicas}]
    return {"timeoutMs": 5_000, "topics": [{"name": name, "partitions": partitions}]}


def reassigned(code: int, text: str | None, name: str = "{topic}", partition: int = 0) -> Any:
    """An answer for one partition."""
    told = {"partitionIndex": partition, "errorCode": code, "errorMessage": text}
    responses = [{"name": name, "partitions": [told]}]
    return {"errorCode": 0, "errorMessage": "", "responses": responses}


ALTER_PARTITION_REASSIGNMENTS = Table(
    45,
    "3.12",
    (
        Case("moved", reassign([3]), reassigned(0, None), topic=Topic()),
        Case("grown", reassign([1, 2, 3]), reassigned(0, None), topic=Topic()),
        Case(
            "nobody",
            reassign([]),
            reassigned(39, "Empty replica list specified in partition reassignment."),
            topic=Topic(),
        ),
        Case(
            "a broker twice",
            reassign([3, 3]),
            reassigned(39, "Duplicate replica ids in…"),
            topic=Topic(),
        ),
        Case(
            "a negative broker",
            reassign([-3]),
            reassigned(39, "Invalid broker id in…"),
            topic=Topic(),
        ),
        Case(
            "an unknown broker",
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
        Case("unknown", reassign([3], "none-{n}"), reassigned(3, UNKNOWN, "none-{n}")),
        Case(
            "unknown partition",
            reassign([3], partition=9),
            reassigned(3, UNKNOWN, partition=9),
            topic=Topic(),
        ),
        Case("nothing asked", {"timeoutMs": 1, "topics": []}, {"errorCode": 0, "responses": []}),
    ),
)
LIST_PARTITION_REASSIGNMENTS = Table(
    46,
    "3.12",
    (
        Case(
            "a topic at rest",
            {"timeoutMs": 1, "topics": [{"name": "{topic}", "partitionIndexes": [0, 9]}]},
            {"errorCode": 0, "errorMessage": "", "topics": []},
            topic=Topic(),
        ),
        Case(
            "unknown",
            {"timeoutMs": 1, "topics": [{"name": "none-{n}", "partitionIndexes": [0]}]},
            {"errorCode": 0, "errorMessage": "", "topics": []},
        ),
        Case("nothing asked", {"timeoutMs": 1, "topics": []}, {"errorCode": 0, "topics": []}),
    ),
)
TABLES: Final = (
    LIST_OFFSETS,
    DELETE_RECORDS,
    DESCRIBE_PRODUCERS,
    ALTER_REPLICA_LOG_DIRS,
    DESCRIBE_LOG_DIRS,
    ELECT_LEADERS,
    ALTER_PARTITION_REASSIGNMENTS,
    LIST_PARTITION_REASSIGNMENTS,
)
