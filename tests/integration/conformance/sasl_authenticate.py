"""SaslAuthenticate."""

from __future__ import annotations

from tests.integration.conformance.case import Case

CASES = (
    Case(
        "on a listener without SASL",
        {"authBytes": b"x"},
        {
            "errorCode": 34,
            "errorMessage": "SaslAuthenticate request received after successful authentication",
        },
    ),
)
