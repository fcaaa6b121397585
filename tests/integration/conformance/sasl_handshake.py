"""SaslHandshake."""

from __future__ import annotations

from tests.integration.conformance.case import Case

CASES = (
    Case("on a listener without SASL", {"mechanism": "PLAIN"}, {"errorCode": 34, "mechanisms": []}),
)
