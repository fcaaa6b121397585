"""DeleteGroups."""

from __future__ import annotations

from tests.integration.conformance.case import Case

CASES = (
    Case("empty request", {"groupsNames": []}, {"results": []}),
    Case(
        "unknown groups",
        {"groupsNames": ["{mine}", "{other}", "{mine}"]},
        {
            "results": [
                {"groupId": "{mine}", "errorCode": 69},
                {"groupId": "{other}", "errorCode": 16},
            ]
        },
    ),
)
