"""ConsumerGroupDescribe."""

from __future__ import annotations

from tests.integration.conformance.case import Case, Table

TABLE = Table(
    69,
    "3.14",
    (
        Case(
            "groups",
            {"groupIds": ["g", ""]},
            {
                "groups": [
                    {"groupId": group, "errorCode": 35, "errorMessage": None, "members": []}
                    for group in ("g", "")
                ]
            },
        ),
        Case("none asked", {"groupIds": []}, {"groups": []}),
    ),
)
