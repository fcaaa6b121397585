"""DescribeUserScramCredentials."""

from __future__ import annotations

from typing import Any

from tests.integration.conformance.case import Case


def users(*names: str) -> dict[str, Any]:
    """A request with users."""
    return {"users": [{"name": name} for name in names]}


def described(code: int, text: str, user: str) -> dict[str, Any]:
    """A response with one user without credentials."""
    result = {"user": user, "errorCode": code, "errorMessage": text, "credentialInfos": []}
    return {"errorCode": 0, "errorMessage": "", "results": [result]}


CASES = (
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
