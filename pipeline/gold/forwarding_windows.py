"""KIP-590's five metrics, computed from events for each window of ten seconds of the wall clock."""

from __future__ import annotations

from typing import Final

from pipeline.query import query
from pipeline.table import Table

WINDOW_MS: Final = 10_000

_WINDOWS: Final = f"""
WITH parts AS (
  SELECT run, node, source, wall_ms, 'request' AS part FROM request_received
  UNION ALL SELECT run, node, source, wall_ms, 'response' FROM responded
  UNION ALL SELECT run, node, source, wall_ms, CASE WHEN NOT local THEN 'forward' END
  FROM forward_sent
  UNION ALL SELECT run, node, source, wall_ms, CASE WHEN error = 31 THEN 'denial' END
  FROM envelope_rejected),
counted AS (
  SELECT run, node, wall_ms DIV {WINDOW_MS} AS slice, count_if(part = 'request') AS requests,
    count_if(part = 'response') AS responses, count_if(part = 'forward') AS forward_attempts,
    count_if(part = 'denial') AS authorization_failures
  FROM parts WHERE source = 'node' GROUP BY run, node, wall_ms DIV {WINDOW_MS}),
-- A message counts as redirected once, in the window of its first remote attempt.
waits AS (
  SELECT run, received.node AS node, received.connection AS connection, first_remote_ms,
    first_remote_ms DIV {WINDOW_MS} AS slice
  FROM requests WHERE first_remote_ms IS NOT NULL AND received IS NOT NULL),
redirected AS (
  SELECT run, node, slice, count(*) AS redirected, count(DISTINCT connection) AS waiting_clients
  FROM waits GROUP BY run, node, slice)
SELECT c.run, c.node, c.slice * {WINDOW_MS} AS window_ms, c.requests, c.responses,
  c.forward_attempts, coalesce(r.redirected, 0) AS num_messages_redirected,
  coalesce(r.redirected, 0) * 1000D / {WINDOW_MS} AS num_messages_redirected_rate,
  coalesce(r.waiting_clients, 0) AS clients_forwarding,
  coalesce(r.waiting_clients, 0) * 1000D / {WINDOW_MS} AS clients_forwarding_rate,
  c.authorization_failures,
  CASE WHEN c.requests > 0 THEN coalesce(r.redirected, 0) / c.requests END AS redirected_share
FROM counted c LEFT JOIN redirected r
  ON c.run = r.run AND c.node = r.node AND c.slice = r.slice
"""

FORWARDING_WINDOWS: Final = Table(
    name="gold/forwarding_windows",
    inputs=(
        *(
            "silver/request_received",
            "silver/responded",
            "silver/forward_sent",
            "silver/envelope_rejected",
        ),
        "gold/requests",
    ),
    schema="run STRING, node STRING, window_ms BIGINT, requests BIGINT, responses BIGINT, "
    "forward_attempts BIGINT, num_messages_redirected BIGINT, "
    "num_messages_redirected_rate DOUBLE, clients_forwarding BIGINT, "
    "clients_forwarding_rate DOUBLE, authorization_failures BIGINT, redirected_share DOUBLE",
    build=query(_WINDOWS),
)
