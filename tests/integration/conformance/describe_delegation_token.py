"""DescribeDelegationToken."""

from __future__ import annotations

from tests.integration.conformance.case import Case

CASES = (
    Case("all", {"owners": None}, {"errorCode": 64, "tokens": []}),
    Case("none", {"owners": []}, {"errorCode": 64, "tokens": []}),
)
