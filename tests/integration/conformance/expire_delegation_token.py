"""ExpireDelegationToken."""

from __future__ import annotations

from tests.integration.conformance.case import Case, Table

NOT_ALLOWED = {"errorCode": 64, "expiryTimestampMs": -1}
TABLE = Table(
    40, "3.11", (Case("expired", {"hmac": b"x" * 64, "expiryTimePeriodMs": -1}, NOT_ALLOWED),)
)
