"""SaslAuthenticate."""

from __future__ import annotations

from tests.integration.conformance.case import Case

CASES = (
    Case(
        "no login",
        {"authBytes": b"x"},
        {
            "errorCode": 34,
            "errorMessage": "SaslAuthenticate request received after successful authentication",
        },
    ),
)
