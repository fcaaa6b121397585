"""Latencies: exact percentiles by API and hop."""

from __future__ import annotations

from typing import Final

from pipeline.query import query
from pipeline.table import Table

PERCENTILES: Final = """
  count(*) AS requests, min(us) AS min_us, percentile(us, 0.5) AS p50_us,
  percentile(us, 0.9) AS p90_us, percentile(us, 0.99) AS p99_us, max(us) AS max_us"""
PERCENTILE_COLUMNS: Final = (
    "requests BIGINT, min_us BIGINT, p50_us DOUBLE, p90_us DOUBLE, p99_us DOUBLE, max_us BIGINT"
)

# In microseconds: nanoseconds would have too many different values for exact percentiles.
_BY_API: Final = f"""
WITH hops AS (
  SELECT run, received.api_key AS api_key, received.route AS route, h.hop, h.ns DIV 1000 AS us
  FROM requests LATERAL VIEW explode(array(
    named_struct('hop', 'total', 'ns', total_ns),
    named_struct('hop', 'broker to controller and back', 'ns', forward_ns),
    named_struct('hop', 'broker to controller', 'ns', to_controller_ns),
    named_struct('hop', 'queue of the controller', 'ns', queue_ns),
    named_struct('hop', 'decision and commit', 'ns', decide_ns))) x AS h
  WHERE received IS NOT NULL AND h.ns IS NOT NULL AND h.ns >= 0
  UNION ALL
  SELECT run, -1, 'COMMIT', 'ZooKeeper', took_ns DIV 1000 FROM commits WHERE took_ns IS NOT NULL)
SELECT run, api_key, route, hop, {PERCENTILES} FROM hops GROUP BY run, api_key, route, hop
"""

LATENCY: Final = Table(
    name="gold/latency",
    inputs=("gold/requests", "gold/commits"),
    schema=f"run STRING, api_key BIGINT, route STRING, hop STRING, {PERCENTILE_COLUMNS}",
    build=query(_BY_API),
)
