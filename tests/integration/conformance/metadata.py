"""Metadata."""

from __future__ import annotations

from typing import Any

from tests.integration.conformance.case import ALL, Case, Topic

NOT_REQUESTED = -2147483648
UNKNOWN_ID = "bWlzc2luZyBtaXNzaW5nIA"


def body(*names: str | None, topic_id: bytes = bytes(16), **more: bool) -> dict[str, Any]:
    """A request that forbids creating topics, in versions with `allowAutoTopicCreation`."""
    topics = [{"name": name, "topicId": topic_id} for name in names]
    return {"topics": topics, "allowAutoTopicCreation": False, **more}


def result(*topics: dict[str, Any], **more: Any) -> dict[str, Any]:
    """A response with three brokers."""
    brokers = [{"nodeId": broker, "rack": f"rack-{broker}"} for broker in (2, 3, 1)]
    return {"brokers": brokers, "controllerId": 1, "topics": list(topics), **more}


def whole_failure(code: int, *names: str) -> dict[str, Any]:
    """The response when the whole request fails."""
    topics = [{"errorCode": code, "name": name, "partitions": []} for name in names]
    return {"brokers": [], "clusterId": None, "controllerId": -1, "topics": topics}


CASES = (
    Case(
        "one topic",
        body("{topic}"),
        result(
            {
                "errorCode": 0,
                "name": "{topic}",
                "isInternal": False,
                "partitions": [
                    {"errorCode": 0, "partitionIndex": 0, "offlineReplicas": []},
                    {"errorCode": 0, "partitionIndex": 1, "offlineReplicas": []},
                ],
                "topicAuthorizedOperations": NOT_REQUESTED,
            },
            clusterAuthorizedOperations=NOT_REQUESTED,
        ),
        topic=Topic(partitions=2, replicas=2),
    ),
    Case("no topics", body(), result(), range(1, 13)),
    Case("duplicate topic", body("{topic}", "{topic}"), result({"name": "{topic}"}), topic=Topic()),
    Case(
        "unknown topic",
        body("none-{n}"),
        result({"errorCode": 3, "name": "none-{n}", "isInternal": False, "partitions": []}),
        range(4, 13),
    ),
    Case(
        "illegal name",
        body("a/b"),
        result({"errorCode": 17, "name": "a/b", "isInternal": False, "partitions": []}),
        ALL,
    ),
    Case("empty name", body(""), result({"errorCode": 17, "name": "", "partitions": []}), ALL),
    Case(
        "known topics first",
        body("none-{n}", "{topic}"),
        result({"errorCode": 0, "name": "{topic}"}, {"errorCode": 3, "name": "none-{n}"}),
        range(4, 13),
        Topic(),
    ),
    Case(
        "authorized operations on topics",
        body("{topic}", includeTopicAuthorizedOperations=True),
        result({"name": "{topic}", "topicAuthorizedOperations": 3576}),
        range(8, 13),
        Topic(),
    ),
    Case(
        "authorized operations on the cluster",
        body(includeClusterAuthorizedOperations=True),
        result(clusterAuthorizedOperations=8096),
        range(8, 11),
    ),
    Case(
        "unknown topic id",
        body(None, topic_id=b"missing missing "),
        result({"errorCode": 100, "name": None, "topicId": UNKNOWN_ID, "partitions": []}),
        range(12, 13),
    ),
    Case(
        "topic id in versions 10 and 11",
        body("", topic_id=b"missing missing "),
        whole_failure(42, ""),
        range(10, 12),
    ),
    Case("null name", body(None), whole_failure(42, ""), range(10, 12)),
    Case("neither name nor id", body(None), whole_failure(-1, ""), range(12, 13)),
)
