"""SaslHandshake."""

from __future__ import annotations

from tests.integration.conformance.case import Case

CASES = (Case("no login", {"mechanism": "PLAIN"}, {"errorCode": 34, "mechanisms": []}),)
