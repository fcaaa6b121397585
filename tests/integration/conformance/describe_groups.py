"""DescribeGroups."""

from __future__ import annotations

from tests.integration.conformance.case import Case

DEAD = {
    "groupId": "{mine}",
    "errorCode": 0,
    "groupState": "Dead",
    "protocolType": "",
    "protocolData": "",
    "members": [],
    "authorizedOperations": -2147483648,
}
CASES = (
    Case("empty request", {"groups": []}, {"groups": []}),
    Case(
        "unknown groups",
        {"groups": ["{mine}", "{other}", "{mine}"]},
        {"groups": [DEAD, {**DEAD, "groupId": "{other}", "errorCode": 16, "groupState": ""}, DEAD]},
    ),
    Case(
        "authorized operations",
        {"groups": ["{mine}", "{other}"], "includeAuthorizedOperations": True},
        {"groups": [{"authorizedOperations": 328}, {"authorizedOperations": -2147483648}]},
        range(3, 6),
    ),
)
