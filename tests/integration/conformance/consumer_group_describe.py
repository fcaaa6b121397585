"""ConsumerGroupDescribe."""

from __future__ import annotations

from tests.integration.conformance.case import Case

CASES = (
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
    Case("empty request", {"groupIds": []}, {"groups": []}),
)
