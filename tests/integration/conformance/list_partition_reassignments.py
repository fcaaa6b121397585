"""ListPartitionReassignments."""

from __future__ import annotations

from tests.integration.conformance.case import Case, Table, Topic

TABLE = Table(
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
