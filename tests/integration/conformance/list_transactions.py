"""ListTransactions."""

from __future__ import annotations

from tests.integration.conformance.case import Case

CASES = (
    Case(
        "all transactions", {}, {"errorCode": 0, "unknownStateFilters": [], "transactionStates": []}
    ),
    Case(
        "unknown states",
        {"stateFilters": ["Ongoing", "ongoing", "bogus"]},
        {"errorCode": 0, "unknownStateFilters": ["ongoing", "bogus"], "transactionStates": []},
    ),
    Case(
        "filtered by producer",
        {"producerIdFilters": [1]},
        {"errorCode": 0, "transactionStates": []},
    ),
)
