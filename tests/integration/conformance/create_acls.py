"""CreateAcls."""

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
    """The result of each creation."""
    return [{"errorCode": 54, "errorMessage": NO_AUTHORIZER}] * count


CASES = (
    Case("one ACL", {"creations": [ACL]}, {"results": rejected(1)}),
    Case("two ACLs", {"creations": [ACL, {**ACL, "operation": 4}]}, {"results": rejected(2)}),
)
