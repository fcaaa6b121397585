"""The number of forwarded requests by node, API and route."""

from __future__ import annotations

from typing import Final

from pipeline.query import query
from pipeline.table import Table

_SHARES: Final = """
SELECT run, received.node AS node, received.api_key AS api_key,
  received.api_version AS api_version, received.route AS route, count(*) AS requests,
  count_if(attempts > 0) AS forwarded, count_if(remote_attempts > 0) AS redirected,
  sum(greatest(attempts - 1, 0)) AS resends, count_if(responded.closed) AS closed,
  count_if(responded IS NULL) AS unfinished
FROM requests WHERE received IS NOT NULL
GROUP BY run, received.node, received.api_key, received.api_version, received.route
"""

FORWARDED_SHARES: Final = Table(
    name="gold/forwarded_shares",
    inputs=("gold/requests",),
    schema="run STRING, node STRING, api_key BIGINT, api_version BIGINT, route STRING, "
    "requests BIGINT, forwarded BIGINT, redirected BIGINT, resends BIGINT, closed BIGINT, "
    "unfinished BIGINT",
    build=query(_SHARES),
)
