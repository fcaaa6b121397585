"""ListGroups."""

from __future__ import annotations

from tests.integration.conformance.case import ALL, Case

CASES = (
    Case("all groups", {}, {"errorCode": 0, "groups": []}),
    Case("filtered by state", {"statesFilter": ["Stable"]}, {"errorCode": 0, "groups": []}, ALL),
    Case("unknown state", {"statesFilter": ["bogus"]}, {"errorCode": 0, "groups": []}),
    Case("unknown type", {"typesFilter": ["bogus"]}, {"errorCode": 0, "groups": []}),
)
