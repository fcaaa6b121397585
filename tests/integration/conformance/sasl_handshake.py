"""SaslHandshake."""

from __future__ import annotations

from tests.integration.conformance.case import Case, Table

TABLE = Table(
    17, "11", (Case("no login", {"mechanism": "PLAIN"}, {"errorCode": 34, "mechanisms": []}),)
)
