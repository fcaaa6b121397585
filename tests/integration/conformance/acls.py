"""Cases of ACLs."""

from __future__ import annotations

from typing import Any

from tests.integration.conformance.case import Case

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


def rejected(count: int) -> list[dict[str, Any]]:
    """The result of each creation or filter."""
    return [{"errorCode": 54, "errorMessage": NO_AUTHORIZER}] * count


CREATE_ACLS = (
    Case("one ACL", {"creations": [ACL]}, {"results": rejected(1)}),
    Case("two ACLs", {"creations": [ACL, {**ACL, "operation": 4}]}, {"results": rejected(2)}),
)

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

NOT_DESCRIBED = {
    "errorCode": 54,
    "errorMessage": "No Authorizer is configured on the broker",
    "resources": [],
}

DESCRIBE_ACLS = (
    Case("filter for all ACLs", EVERYTHING, NOT_DESCRIBED),
    Case("filter for one principal", OF_ALICE, NOT_DESCRIBED),
)

DELETE_ACLS = (
    Case("one filter", {"filters": [EVERYTHING]}, {"filterResults": rejected(1)}),
    Case("two filters", {"filters": [EVERYTHING, OF_ALICE]}, {"filterResults": rejected(2)}),
)
