"""ListPartitionReassignments."""

from __future__ import annotations

from tests.integration.conformance.case import Case, Topic

CASES = (
    Case(
        "no reassignment",
        {"timeoutMs": 1, "topics": [{"name": "{topic}", "partitionIndexes": [0, 9]}]},
        {"errorCode": 0, "errorMessage": "", "topics": []},
        topic=Topic(),
    ),
    Case(
        "unknown topic",
        {"timeoutMs": 1, "topics": [{"name": "none-{n}", "partitionIndexes": [0]}]},
        {"errorCode": 0, "errorMessage": "", "topics": []},
    ),
    Case("empty request", {"timeoutMs": 1, "topics": []}, {"errorCode": 0, "topics": []}),
)
