"""DescribeClientQuotas."""

from __future__ import annotations

from typing import Any

from tests.integration.conformance.case import Case


def request(*components: tuple[str, int, str | None], strict: bool = False) -> dict[str, Any]:
    """A request with a filter."""
    return {
        "components": [
            {"entityType": kind, "matchType": how, "match": match}
            for kind, how, match in components
        ],
        "strict": strict,
    }


def failure(code: int, text: str | None) -> dict[str, Any]:
    """A response with an error."""
    return {"errorCode": code, "errorMessage": text, "entries": None}


EXACT, DEFAULT, ANY = 0, 1, 2
CASES = (
    Case(
        "unknown user",
        request(("user", EXACT, "none-{n}")),
        {"errorCode": 0, "errorMessage": "", "entries": []},
    ),
    Case("strict without components", request(strict=True), {"errorCode": 0, "entries": []}),
    Case(
        "duplicate entity type",
        request(("user", ANY, None), ("user", DEFAULT, None)),
        failure(42, "Duplicate user filter component entity type"),
    ),
    Case(
        "empty entity type",
        request(("", ANY, None)),
        failure(42, "Unexpected empty filter component entity type"),
    ),
    Case(
        "unknown entity type",
        request(("planet", ANY, None)),
        failure(35, "Custom entity type 'planet' not supported"),
    ),
    Case(
        "IP and user",
        request(("ip", ANY, None), ("user", ANY, None)),
        failure(
            42,
            "Invalid entity filter component combination, IP filter component should not be "
            "used with user or clientId filter component.",
        ),
    ),
    Case("unknown match type", request(("user", 9, None)), failure(-1, None)),
    Case("exact match of null", request(("user", EXACT, None)), failure(-1, None)),
)
