"""DescribeDelegationToken."""

from __future__ import annotations

from tests.integration.conformance.case import Case, Table

TABLE = Table(
    41,
    "3.11",
    (
        Case("all", {"owners": None}, {"errorCode": 64, "tokens": []}),
        Case("none", {"owners": []}, {"errorCode": 64, "tokens": []}),
    ),
)
