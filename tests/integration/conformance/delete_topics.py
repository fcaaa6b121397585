"""DeleteTopics: by name up to version 5, by name or id from version 6 on."""

from __future__ import annotations

from typing import Any

from tests.integration.conformance.case import Case, Topic

OLD, NEW = range(6), range(6, 7)
UNKNOWN_ID = "bWlzc2luZyBtaXNzaW5nIA"
NO_ID = "A" * 22
MISSING = "KIP-4: a missing topic has INVALID_TOPIC_EXCEPTION"


def body(*names: str, timeout: int = 10_000) -> dict[str, Any]:
    """A request for any version: versions below 6 have `topicNames`, version 6 has `topics`."""
    return {
        "topicNames": list(names),
        "topics": [{"name": name, "topicId": bytes(16)} for name in names],
        "timeoutMs": timeout,
    }


def by_id(name: str | None, topic_id: bytes) -> dict[str, Any]:
    """A request for version 6."""
    return {"topics": [{"name": name, "topicId": topic_id}], "timeoutMs": 10_000}


def result(*codes: tuple[str, int]) -> dict[str, Any]:
    """A response with a code for each name. Every message is null."""
    return {
        "responses": [
            {"name": name, "errorCode": code, "errorMessage": None} for name, code in codes
        ]
    }


CASES = (
    Case("deleted", body("{topic}"), result(("{topic}", 0)), topic=Topic(partitions=2)),
    Case("timeout of zero", body("{topic}", timeout=0), result(("{topic}", 7)), topic=Topic()),
    Case("empty request", body(), {"responses": []}),
    Case("unknown topic", body("none-{n}"), result(("none-{n}", 3)), drafted=MISSING),
    Case("empty name", body(""), result(("", 3)), drafted=MISSING),
    Case("illegal name", body("bad name"), result(("bad name", 3)), drafted=MISSING),
    Case(
        "one good, one bad",
        body("{topic}", "none-{n}"),
        result(("{topic}", 0), ("none-{n}", 3)),
        topic=Topic(),
        drafted=MISSING,
    ),
    Case(
        "unknown id",
        by_id(None, b"missing missing "),
        {"responses": [{"name": None, "topicId": UNKNOWN_ID, "errorCode": 100}]},
        NEW,
    ),
    Case(
        "neither name nor id",
        by_id(None, bytes(16)),
        {"responses": [{"name": None, "topicId": NO_ID, "errorCode": 29}]},
        NEW,
    ),
    Case(
        "name and id",
        by_id("none-{n}", b"missing missing "),
        {"responses": [{"name": "none-{n}", "errorCode": 42, "errorMessage": None}]},
        NEW,
    ),
)
