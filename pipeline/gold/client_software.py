"""The software of clients, by API."""

from __future__ import annotations

from typing import Final

from pipeline.query import query
from pipeline.table import Table

_SOFTWARE: Final = """
SELECT run, received.client_software_name AS name, received.client_software_version AS version,
  received.api_key AS api_key, min(received.api_version) AS min_api_version,
  max(received.api_version) AS max_api_version, count(*) AS requests,
  count(DISTINCT received.connection) AS connections,
  count(DISTINCT received.principal) AS principals
FROM requests WHERE received IS NOT NULL
GROUP BY run, received.client_software_name, received.client_software_version, received.api_key
"""

CLIENT_SOFTWARE: Final = Table(
    name="gold/client_software",
    inputs=("gold/requests",),
    schema="run STRING, name STRING, version STRING, api_key BIGINT, min_api_version BIGINT, "
    "max_api_version BIGINT, requests BIGINT, connections BIGINT, principals BIGINT",
    build=query(_SOFTWARE),
)
