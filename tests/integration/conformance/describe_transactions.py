"""DescribeTransactions."""

from __future__ import annotations

from tests.integration.conformance.case import Case

CASES = (
    Case(
        "unknown ids",
        {"transactionalIds": ["{mine}", "{other}", ""]},
        {
            "transactionStates": [
                {"transactionalId": "{mine}", "errorCode": 105, "topics": []},
                {"transactionalId": "{other}", "errorCode": 16, "topics": []},
                {"transactionalId": "", "errorCode": 42, "topics": []},
            ]
        },
    ),
    Case("empty request", {"transactionalIds": []}, {"transactionStates": []}),
)
