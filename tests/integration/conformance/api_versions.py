"""ApiVersions."""

from __future__ import annotations

from tests.integration.conformance.case import Case, Table

SOFTWARE = {"clientSoftwareName": "conformance", "clientSoftwareVersion": "1.0"}
TABLE = Table(
    18,
    "3.14",
    (
        Case("what there is", SOFTWARE, {"errorCode": 0}),
        Case(
            "without a name",
            {**SOFTWARE, "clientSoftwareName": ""},
            {"errorCode": 42, "apiKeys": []},
            range(3, 5),
        ),
        Case(
            "a strange version",
            {**SOFTWARE, "clientSoftwareVersion": "-1"},
            {"errorCode": 42, "apiKeys": []},
            range(3, 5),
        ),
    ),
)
