"""ConsumerGroupHeartbeat."""

from __future__ import annotations

from tests.integration.conformance.case import Case, Table

TABLE = Table(
    68,
    "3.14",
    (Case("beat", {"groupId": "g", "memberId": "m"}, {"errorCode": 35, "errorMessage": None}),),
)
