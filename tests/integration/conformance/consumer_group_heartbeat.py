"""ConsumerGroupHeartbeat."""

from __future__ import annotations

from tests.integration.conformance.case import Case

CASES = (
    Case("heartbeat", {"groupId": "g", "memberId": "m"}, {"errorCode": 35, "errorMessage": None}),
)
