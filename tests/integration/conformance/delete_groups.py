"""DeleteGroups."""

from __future__ import annotations

from tests.integration.conformance.case import Case, Table

TABLE = Table(
    42,
    "3.20",
    (
        Case("none asked", {"groupsNames": []}, {"results": []}),
        Case(
            "not met",
            {"groupsNames": ["{mine}", "{other}", "{mine}"]},
            {
                "results": [
                    {"groupId": "{mine}", "errorCode": 69},
                    {"groupId": "{other}", "errorCode": 16},
                ]
            },
        ),
    ),
)
