"""Latencies: exact percentiles by API and hop; the time from a commit to each broker's image."""

from __future__ import annotations

from typing import Final

from pipeline.table import Table, query

_PERCENTILES: Final = """
  count(*) AS requests, min(us) AS min_us, percentile(us, 0.5) AS p50_us,
  percentile(us, 0.9) AS p90_us, percentile(us, 0.99) AS p99_us, max(us) AS max_us"""

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
SELECT run, api_key, route, hop, {_PERCENTILES} FROM hops GROUP BY run, api_key, route, hop
"""

# The time from ZooKeeper's confirmation of a commit until each broker has the image. It is computed
# only if the controller and the broker are on the same host and the broker had an image with that
# exact zxid.
_PROPAGATION: Final = f"""
WITH commits_done AS (
  SELECT e.run, e.zxid, min(e.mono_ns) AS mono_ns, min(e.host_boot_id) AS host
  FROM events e WHERE e.kind = 'commit_answered' GROUP BY e.run, e.zxid),
images AS (
  SELECT run, node, boot, zxid, min(mono_ns) AS mono_ns, min(host_boot_id) AS host
  FROM events WHERE kind = 'image_advanced' AND side = 'broker' GROUP BY run, node, boot, zxid),
pairs AS (
  SELECT i.run, i.node, i.boot, (i.mono_ns - c.mono_ns) DIV 1000 AS us
  FROM images i JOIN commits_done c ON i.run = c.run AND i.zxid = c.zxid AND i.host = c.host)
SELECT run, node, boot, {_PERCENTILES} FROM pairs GROUP BY run, node, boot
"""

_COLUMNS: Final = (
    "requests BIGINT, min_us BIGINT, p50_us DOUBLE, p90_us DOUBLE, p99_us DOUBLE, max_us BIGINT"
)
LATENCY: Final = Table(
    name="gold/latency",
    inputs=("gold/requests", "gold/commits"),
    schema=f"run STRING, api_key BIGINT, route STRING, hop STRING, {_COLUMNS}",
    build=query(_BY_API),
)
PROPAGATION: Final = Table(
    name="gold/propagation",
    inputs=("silver/events",),
    schema=f"run STRING, node STRING, boot STRING, {_COLUMNS}",
    build=query(_PROPAGATION),
)
