"""CreateTopics."""

from __future__ import annotations

from typing import Any

from bridgehead.raw_client.codec import topic_body
from tests.integration.conformance.case import Case, Topic

LARGER_FACTOR = "Replication factor: 4 larger than available brokers: 3."
BOTH = (
    "Both numPartitions or replicationFactor and replicasAssignments were set. "
    "Both cannot be used at the same time."
)


def body(*topics: dict[str, Any], timeout: int = 10_000, dry: bool = False) -> dict[str, Any]:
    """A request."""
    return {"topics": list(topics), "timeoutMs": timeout, "validateOnly": dry}


def topic(
    name: str = "new-{n}",
    partitions: int | None = None,
    replicas: int | None = None,
    assignments: dict[int, list[int]] | None = None,
    **configs: str | None,
) -> dict[str, Any]:
    """A topic of a request. With `assignments` the default counts are -1."""
    dotted = {key.replace("_", "."): value for key, value in configs.items()}
    return topic_body(name, partitions, replicas, assignments, dotted)


def result(code: int, text: str | None, name: str = "new-{n}", **more: Any) -> dict[str, Any]:
    """A response with one topic."""
    return {"topics": [{"name": name, "errorCode": code, "errorMessage": text, **more}]}


NO_DETAILS = {"numPartitions": -1, "replicationFactor": -1, "configs": []}


def rejected(code: int, text: str, name: str = "new-{n}") -> dict[str, Any]:
    """A response with an error. The topic's other fields have their defaults."""
    return result(code, text, name, **NO_DETAILS)


CASES = (
    Case("created", body(topic()), result(0, None, numPartitions=1, replicationFactor=1)),
    Case(
        "defaults",
        body(topic(partitions=-1, replicas=-1)),
        result(0, None, numPartitions=1),
        drafted="KIP-4: numbers or an assignment must be defined",
    ),
    Case(
        "with an assignment",
        body(topic(assignments={0: [1, 2], 1: [2, 3]})),
        result(0, None, numPartitions=2, replicationFactor=2),
    ),
    Case("with configs", body(topic(retention_ms="1000")), result(0, None, numPartitions=1)),
    Case("empty request", body(), {"topics": []}),
    Case("timeout of zero", body(topic(), timeout=0), result(7, None)),
    Case("negative timeout", body(topic(), timeout=-1), result(7, None)),
    Case("dry run", body(topic(), dry=True), result(0, None), range(1, 8)),
    Case(
        "dry run of an invalid topic",
        body(topic(partitions=0), dry=True),
        rejected(37, "Number of partitions must be larger than 0."),
        range(1, 8),
    ),
    Case(
        "existing topic",
        body(topic("{topic}")),
        rejected(36, "Topic '{topic}' already exists.", "{topic}"),
        topic=Topic(),
    ),
    Case(
        "dry run of an existing topic",
        body(topic("{topic}"), dry=True),
        rejected(36, "Topic '{topic}' already exists.", "{topic}"),
        range(1, 8),
        Topic(),
    ),
    Case(
        "duplicate topic",
        body(topic(), topic()),
        {
            "topics": [{"errorCode": 42, "errorMessage": "Found multiple entries for this topic."}]
            * 2
        },
        drafted="KIP-4: a duplicate topic has a single code",
    ),
    Case(
        "one good, one bad",
        body(topic("a-{n}"), topic("b-{n}", partitions=-2)),
        {
            "topics": [
                {"name": "a-{n}", "errorCode": 0, "errorMessage": None},
                {"name": "b-{n}", "errorCode": 37},
            ]
        },
    ),
    Case(
        "no partitions",
        body(topic(partitions=0)),
        rejected(37, "Number of partitions must be larger than 0."),
    ),
    Case(
        "no replicas",
        body(topic(replicas=0)),
        rejected(38, "Replication factor must be larger than 0."),
    ),
    Case("too many replicas", body(topic(replicas=4)), rejected(38, LARGER_FACTOR)),
    Case(
        "empty name",
        body(topic("")),
        rejected(17, "Topic name is invalid: the empty string is not allowed", ""),
    ),
    Case(
        "illegal name",
        body(topic("a/b")),
        rejected(
            17,
            "Topic name is invalid: 'a/b' contains one or more characters other than ASCII "
            "alphanumerics, '.', '_' and '-'",
            "a/b",
        ),
    ),
    Case(
        "name of one dot",
        body(topic(".")),
        rejected(17, "Topic name is invalid: '.' is not allowed", "."),
    ),
    Case(
        "too long name",
        body(topic("x" * 250)),
        rejected(
            17,
            f"Topic name is invalid: the length of '{'x' * 250}' is longer than the max "
            "allowed length 249",
            "x" * 250,
        ),
    ),
    Case(
        "KRaft metadata topic",
        body(topic("__cluster_metadata")),
        rejected(
            42, "Creation of internal topic __cluster_metadata is prohibited.", "__cluster_metadata"
        ),
    ),
    Case(
        "unknown config",
        body(topic(no_such_thing="1")),
        rejected(40, "Unknown topic config name: no.such.thing"),
    ),
    Case(
        "bad config value",
        body(topic(retention_ms="long")),
        rejected(
            40, "Invalid value long for configuration retention.ms: Not a number of type LONG"
        ),
    ),
    Case(
        "null config value",
        body(topic(retention_ms=None)),
        rejected(40, "Null value not supported for topic configs: retention.ms"),
    ),
    Case(
        "counts and an assignment",
        body(topic(partitions=2, assignments={0: [1]})),
        rejected(42, BOTH),
    ),
    Case(
        "uneven assignment",
        body(topic(assignments={0: [1], 1: [1, 2]})),
        rejected(39, "All partitions should have the same number of replicas"),
    ),
    Case(
        "assignment without partition 1",
        body(topic(assignments={0: [1], 2: [1]})),
        rejected(39, "partitions should be a consecutive 0-based integer sequence"),
    ),
    Case(
        "duplicate broker",
        body(topic(assignments={0: [1, 1]})),
        rejected(39, "Duplicate replica assignment found: …"),
    ),
)
