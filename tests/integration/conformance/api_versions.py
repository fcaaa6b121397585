"""ApiVersions."""

from __future__ import annotations

from tests.integration.conformance.case import Case

SOFTWARE = {"clientSoftwareName": "conformance", "clientSoftwareVersion": "1.0"}
CASES = (
    Case("all APIs", SOFTWARE, {"errorCode": 0}),
    Case(
        "empty software name",
        {**SOFTWARE, "clientSoftwareName": ""},
        {"errorCode": 42, "apiKeys": []},
        range(3, 5),
    ),
    Case(
        "invalid software version",
        {**SOFTWARE, "clientSoftwareVersion": "-1"},
        {"errorCode": 42, "apiKeys": []},
        range(3, 5),
    ),
)
