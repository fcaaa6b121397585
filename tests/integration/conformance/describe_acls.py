"""DescribeAcls."""

from __future__ import annotations

from tests.integration.conformance.case import Case
from tests.integration.conformance.delete_acls import EVERYTHING, OF_ALICE

NOT_DESCRIBED = {
    "errorCode": 54,
    "errorMessage": "No Authorizer is configured on the broker",
    "resources": [],
}
CASES = (
    Case("filter for all ACLs", EVERYTHING, NOT_DESCRIBED),
    Case("filter for one principal", OF_ALICE, NOT_DESCRIBED),
)
