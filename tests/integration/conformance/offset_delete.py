"""OffsetDelete."""

from __future__ import annotations

from tests.integration.conformance.case import Case

CASES = (
    Case("empty group id", {"groupId": ""}, {"errorCode": 24, "topics": []}),
    Case("unknown group", {"groupId": "{mine}"}, {"errorCode": 69, "topics": []}),
    Case("another coordinator", {"groupId": "{other}"}, {"errorCode": 16, "topics": []}),
    Case(
        "with topics",
        {"groupId": "{mine}", "topics": [{"name": "t", "partitions": [{"partitionIndex": 0}]}]},
        {"errorCode": 69, "topics": []},
    ),
)
