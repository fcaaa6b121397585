"""DescribeAcls."""

from __future__ import annotations

from tests.integration.conformance.case import Case

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
CASES = (Case("all", EVERYTHING, NOT_DESCRIBED), Case("some", OF_ALICE, NOT_DESCRIBED))
