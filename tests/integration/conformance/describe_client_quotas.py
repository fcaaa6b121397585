"""DescribeClientQuotas."""

from __future__ import annotations

from typing import Any

from tests.integration.conformance.case import Case


def look(*components: tuple[str, int, str | None], strict: bool = False) -> dict[str, Any]:
    """A request with a filter."""
    return {
        "components": [
            {"entityType": kind, "matchType": how, "match": match}
            for kind, how, match in components
        ],
        "strict": strict,
    }


def not_found(code: int, text: str | None) -> dict[str, Any]:
    """A response with an error."""
    return {"errorCode": code, "errorMessage": text, "entries": None}


EXACT, DEFAULT, ANY = 0, 1, 2
CASES = (
    Case(
        "unknown user",
        look(("user", EXACT, "none-{n}")),
        {"errorCode": 0, "errorMessage": "", "entries": []},
    ),
    Case("strict without components", look(strict=True), {"errorCode": 0, "entries": []}),
    Case(
        "a type twice",
        look(("user", ANY, None), ("user", DEFAULT, None)),
        not_found(42, "Duplicate user filter component entity type"),
    ),
    Case(
        "an empty type",
        look(("", ANY, None)),
        not_found(42, "Unexpected empty filter component entity type"),
    ),
    Case(
        "an unknown type",
        look(("planet", ANY, None)),
        not_found(35, "Custom entity type 'planet' not supported"),
    ),
    Case(
        "ip and user",
        look(("ip", ANY, None), ("user", ANY, None)),
        not_found(
            42,
            "Invalid entity filter component combination, IP filter component should not be "
            "used with user or clientId filter component.",
        ),
    ),
    Case("an unknown match", look(("user", 9, None)), not_found(-1, None)),
    Case("exactly null", look(("user", EXACT, None)), not_found(-1, None)),
)
