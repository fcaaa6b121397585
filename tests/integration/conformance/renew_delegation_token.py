"""RenewDelegationToken."""

from __future__ import annotations

from tests.integration.conformance.case import Case

NOT_ALLOWED = {"errorCode": 64, "expiryTimestampMs": -1}
CASES = (Case("not allowed", {"hmac": b"x" * 64, "renewPeriodMs": 1}, NOT_ALLOWED),)
