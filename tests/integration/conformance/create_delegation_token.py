"""CreateDelegationToken."""

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
CASES = (
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
