"""Cases of logins and SCRAM credentials."""

from __future__ import annotations

from typing import Any

from tests.integration.conformance.case import Case

SASL_HANDSHAKE = (
    Case("on a listener without SASL", {"mechanism": "PLAIN"}, {"errorCode": 34, "mechanisms": []}),
)

SASL_AUTHENTICATE = (
    Case(
        "on a listener without SASL",
        {"authBytes": b"x"},
        {
            "errorCode": 34,
            "errorMessage": "SaslAuthenticate request received after successful authentication",
        },
    ),
)


def users(*names: str) -> dict[str, Any]:
    """A request with users."""
    return {"users": [{"name": name} for name in names]}


def described(code: int, text: str, user: str) -> dict[str, Any]:
    """A response with one user without credentials."""
    result = {"user": user, "errorCode": code, "errorMessage": text, "credentialInfos": []}
    return {"errorCode": 0, "errorMessage": "", "results": [result]}


DESCRIBE_USER_SCRAM_CREDENTIALS = (
    Case(
        "unknown user",
        users("x-{n}"),
        described(91, "Attempt to describe a user credential that does not exist: x-{n}", "x-{n}"),
    ),
    Case(
        "duplicate user",
        users("x-{n}", "x-{n}"),
        described(
            92,
            "Cannot describe SCRAM credentials for the same user twice in a single request: x-{n}",
            "x-{n}",
        ),
    ),
    Case("empty user name", users(""), described(91, "Username must not be empty", "")),
)


def scram(*upsertions: tuple[str, int, int], deletions: tuple[tuple[str, int], ...] = ()) -> Any:
    """A request. `upsertions` are (user, mechanism, iterations), `deletions` (user, mechanism)."""
    return {
        "deletions": [{"name": name, "mechanism": mechanism} for name, mechanism in deletions],
        "upsertions": [
            {
                "name": name,
                "mechanism": mechanism,
                "iterations": iterations,
                "salt": b"salt",
                "saltedPassword": b"salted password",
            }
            for name, mechanism, iterations in upsertions
        ],
    }


def altered(code: int, text: str, user: str = "u-{n}") -> dict[str, Any]:
    """A response with one user."""
    return {"results": [{"user": user, "errorCode": code, "errorMessage": text}]}


TWICE = "A user credential cannot be altered twice in the same request"

ALTER_USER_SCRAM_CREDENTIALS = (
    Case("created", scram(("u-{n}", 1, 4096)), altered(0, "")),
    Case("both mechanisms", scram(("u-{n}", 1, 4096), ("u-{n}", 2, 16384)), altered(0, "")),
    Case("empty user name", scram(("", 1, 4096)), altered(93, "Username must not be empty", "")),
    Case("unknown mechanism", scram(("u-{n}", 3, 4096)), altered(33, "Unknown SCRAM mechanism")),
    Case("too few iterations", scram(("u-{n}", 1, 4095)), altered(93, "Too few iterations")),
    Case("too many iterations", scram(("u-{n}", 1, 16385)), altered(93, "Too many iterations")),
    Case("duplicate user", scram(("u-{n}", 1, 4096), ("u-{n}", 1, 4096)), altered(92, TWICE)),
    Case(
        "created and deleted",
        scram(("u-{n}", 1, 4096), deletions=(("u-{n}", 1),)),
        altered(92, TWICE),
    ),
    Case(
        "nothing to delete",
        scram(deletions=(("u-{n}", 1),)),
        altered(91, "Attempt to delete a user credential that does not exist"),
    ),
    Case("empty request", scram(), {"results": []}),
)
