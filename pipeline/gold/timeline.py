"""Requests and latencies over time, in at most 240 slices of a run: the points of the charts."""

from __future__ import annotations

from typing import Final

from pipeline.query import query
from pipeline.table import Table

SLICES: Final = 240
NARROWEST_MS: Final = 100  # in narrower slices, rates are noise

_TIMELINE: Final = f"""
WITH spans AS (
  SELECT run, min(received.wall_ms) AS first_ms,
    greatest((max(received.wall_ms) - min(received.wall_ms)) DIV {SLICES} + 1,
      {NARROWEST_MS}) AS width
  FROM requests WHERE received IS NOT NULL GROUP BY run),
placed AS (
  SELECT /*+ BROADCAST(s) */ r.run, s.first_ms, s.width,
    (r.received.wall_ms - s.first_ms) DIV s.width AS slice, r.received.route AS route,
    r.total_ns DIV 1000 AS us, r.attempts, r.responded.closed AS closed, r.responded IS NULL AS open
  FROM requests r JOIN spans s ON r.run = s.run WHERE r.received IS NOT NULL)
SELECT run, min(first_ms) + slice * min(width) AS slice_ms, min(width) AS width_ms,
  count_if(route = 'FORWARD') AS forwarded, count_if(route <> 'FORWARD') AS others,
  sum(greatest(attempts - 1, 0)) AS resends, count_if(open OR closed) AS unfinished,
  percentile(us, 0.5) FILTER (WHERE route = 'FORWARD') AS p50_us,
  percentile(us, 0.99) FILTER (WHERE route = 'FORWARD') AS p99_us
FROM placed GROUP BY run, slice
"""

TIMELINE: Final = Table(
    name="gold/timeline",
    inputs=("gold/requests",),
    schema="run STRING, slice_ms BIGINT, width_ms BIGINT, forwarded BIGINT, others BIGINT, "
    "resends BIGINT, unfinished BIGINT, p50_us DOUBLE, p99_us DOUBLE",
    build=query(_TIMELINE),
)
