"""RenewDelegationToken."""

from __future__ import annotations

from tests.integration.conformance.case import Case, Table

NOT_ALLOWED = {"errorCode": 64, "expiryTimestampMs": -1}
TABLE = Table(39, "3.11", (Case("renewed", {"hmac": b"x" * 64, "renewPeriodMs": 1}, NOT_ALLOWED),))
