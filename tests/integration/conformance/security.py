"""ACLs without an authorizer, and delegation tokens over a listener without a login."""

from __future__ import annotations

from typing import Any, Final

from tests.integration.conformance.case import Case, Table

NO_AUTHORIZER = "No Authorizer is configured."
ACL = {
    "resourceType": 2,
    "resourceName": "t",
    "resourcePatternType": 3,
    "principal": "User:alice",
    "host": "*",
    "operation": 3,
    "permissionType": 3,
}
EVERYTHING = {
    "resourceTypeFilter": 1,
    "resourceNameFilter": None,
    "patternTypeFilter": 3,
    "principalFilter": None,
    "hostFilter": None,
    "operation": 1,
    "permissionType": 1,
}
OF_ALICE = {**EVERYTHING, "resourceTypeFilter": 2, "principalFilter": "User:alice"}


def refused(count: int) -> list[dict[str, Any]]:
    """What each creation and each filter is told."""
    return [{"errorCode": 54, "errorMessage": NO_AUTHORIZER}] * count


CREATE_ACLS = Table(
    30,
    "3.8",
    (
        Case("one", {"creations": [ACL]}, {"results": refused(1)}),
        Case("two", {"creations": [ACL, {**ACL, "operation": 4}]}, {"results": refused(2)}),
    ),
)
DELETE_ACLS = Table(
    31,
    "3.8",
    (
        Case("all", {"filters": [EVERYTHING]}, {"filterResults": refused(1)}),
        Case("two", {"filters": [EVERYTHING, OF_ALICE]}, {"filterResults": refused(2)}),
    ),
)
NOT_DESCRIBED = {
    "errorCode": 54,
    "errorMessage": "No Authorizer is configured on the broker",
    "resources": [],
}
DESCRIBE_ACLS = Table(
    29, "3.8", (Case("all", EVERYTHING, NOT_DESCRIBED), Case("some", OF_ALICE, NOT_DESCRIBED))
)
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
CREATE_DELEGATION_TOKEN = Table(
    38,
    "3.11",
    (
        Case(
            "for oneself",
            {"ownerPrincipalType": None, "ownerPrincipalName": None, "maxLifetimeMs": -1},
            NOT_ISSUED,
        ),
        Case(
            "with a renewer",
            {
                "renewers": [{"principalType": "User", "principalName": "bob"}],
                "maxLifetimeMs": 1_000,
            },
            NOT_ISSUED,
        ),
    ),
)
NOT_ALLOWED = {"errorCode": 64, "expiryTimestampMs": -1}
RENEW_DELEGATION_TOKEN = Table(
    39, "3.11", (Case("renewed", {"hmac": b"x" * 64, "renewPeriodMs": 1}, NOT_ALLOWED),)
)
EXPIRE_DELEGATION_TOKEN = Table(
    40, "3.11", (Case("expired", {"hmac": b"x" * 64, "expiryTimePeriodMs": -1}, NOT_ALLOWED),)
)
DESCRIBE_DELEGATION_TOKEN = Table(
    41,
    "3.11",
    (
        Case("all", {"owners": None}, {"errorCode": 64, "tokens": []}),
        Case("none", {"owners": []}, {"errorCode": 64, "tokens": []}),
    ),
)
TABLES: Final = (
    CREATE_ACLS,
    DELETE_ACLS,
    DESCRIBE_ACLS,
    CREATE_DELEGATION_TOKEN,
    RENEW_DELEGATION_TOKEN,
    EXPIRE_DELEGATION_TOKEN,
    DESCRIBE_DELEGATION_TOKEN,
)
