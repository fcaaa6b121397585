"""DeleteAcls."""

from __future__ import annotations

from typing import Any

from tests.integration.conformance.case import Case

NO_AUTHORIZER = "No Authorizer is configured."
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


def rejected(count: int) -> list[dict[str, Any]]:
    """The result of each filter."""
    return [{"errorCode": 54, "errorMessage": NO_AUTHORIZER}] * count


CASES = (
    Case("one filter", {"filters": [EVERYTHING]}, {"filterResults": rejected(1)}),
    Case("two filters", {"filters": [EVERYTHING, OF_ALICE]}, {"filterResults": rejected(2)}),
)
