"""Cases of delegation tokens."""

from __future__ import annotations

from tests.integration.conformance.case import Case

NOT_ISSUED = {
    "errorCode": 64,
    "principalType": "User",
    "principalName": "ANONYMOUS",
    "tokenRequesterPrincipalType": "User",
    "tokenRequesterPrincipalName": "ANONYMOUS",
    "issueTimestampMs": -1,
    "expiryTimestampMs": -1,
    "maxTimestampMs": -1,
    "tokenId": "",
    "hmac": "",
}

CREATE_DELEGATION_TOKEN = (
    Case(
        "for the requester",
        {"ownerPrincipalType": None, "ownerPrincipalName": None, "maxLifetimeMs": -1},
        NOT_ISSUED,
    ),
    Case(
        "with a renewer",
        {"renewers": [{"principalType": "User", "principalName": "bob"}], "maxLifetimeMs": 1_000},
        NOT_ISSUED,
    ),
)

DESCRIBE_DELEGATION_TOKEN = (
    Case("all", {"owners": None}, {"errorCode": 64, "tokens": []}),
    Case("none", {"owners": []}, {"errorCode": 64, "tokens": []}),
)

NOT_ALLOWED = {"errorCode": 64, "expiryTimestampMs": -1}

RENEW_DELEGATION_TOKEN = (
    Case("not allowed", {"hmac": b"x" * 64, "renewPeriodMs": 1}, NOT_ALLOWED),
)

EXPIRE_DELEGATION_TOKEN = (
    Case("not allowed", {"hmac": b"x" * 64, "expiryTimePeriodMs": -1}, NOT_ALLOWED),
)
