"""Cases of client quotas."""

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

DESCRIBE_CLIENT_QUOTAS = (
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


def quota(*entity: tuple[str, str | None], dry: bool = False, **values: float) -> dict[str, Any]:
    """A request that sets quotas of one entity."""
    return {
        "entries": [
            {
                "entity": [{"entityType": kind, "entityName": name} for kind, name in entity],
                "ops": [
                    {"key": key, "value": value, "remove": False} for key, value in values.items()
                ],
            }
        ],
        "validateOnly": dry,
    }


def altered(code: int, text: str | None) -> dict[str, Any]:
    """A response with one entity."""
    return {"entries": [{"errorCode": code, "errorMessage": text}]}


ALTER_CLIENT_QUOTAS = (
    Case("user", quota(("user", "u-{n}"), producer_byte_rate=1e6), altered(0, None)),
    Case("client id", quota(("client-id", "c-{n}"), request_percentage=50), altered(0, None)),
    Case(
        "user and client id",
        quota(("user", "u-{n}"), ("client-id", "c-{n}"), consumer_byte_rate=5),
        altered(0, None),
    ),
    Case("default user", quota(("user", None), consumer_byte_rate=5, dry=True), altered(0, None)),
    Case("dry run", quota(("user", "u-{n}"), producer_byte_rate=1, dry=True), altered(0, None)),
    Case(
        "without an entity",
        quota(producer_byte_rate=1),
        altered(42, "Invalid empty client quota entity"),
    ),
    Case(
        "unknown entity type",
        quota(("planet", "x"), producer_byte_rate=1),
        altered(42, "Unhandled client quota entity type: planet"),
    ),
    Case(
        "empty user name",
        quota(("user", ""), producer_byte_rate=1),
        altered(42, "Empty user not supported"),
    ),
    Case(
        "unknown quota",
        quota(("user", "u"), speed=1),
        altered(42, "Invalid configuration key speed"),
    ),
    Case(
        "fractional byte rate",
        quota(("user", "u"), producer_byte_rate=1.5),
        altered(42, "Configuration producer_byte_rate must be a LONG value"),
    ),
    Case(
        "IP and user",
        quota(("ip", "127.0.0.1"), ("user", "u"), connection_creation_rate=1),
        altered(42, "Invalid quota entity combination, IP entity should not be used with…"),
    ),
    Case(
        "invalid IP",
        quota(("ip", "1.2.3.400"), connection_creation_rate=1),
        altered(42, "1.2.3.400 is not a valid IP or resolvable host."),
    ),
    Case("empty request", {"entries": [], "validateOnly": False}, {"entries": []}),
)
