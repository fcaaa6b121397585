"""The multis that controllers sent."""

from __future__ import annotations

from typing import Final

from pipeline.query import query
from pipeline.table import Table

_COMMITS: Final = """
WITH parts AS (
  SELECT run, node, boot, number, epoch, NULL AS zxid, operations, bytes, wall_ms, mono_ns,
    'sent' AS part FROM commit_sent
  UNION ALL
  SELECT run, node, boot, number, NULL, zxid, NULL, NULL, wall_ms, mono_ns, 'acknowledged'
  FROM commit_acknowledged
  UNION ALL
  SELECT run, node, boot, number, epoch, NULL, NULL, NULL, wall_ms, mono_ns, 'unknown'
  FROM commit_unknown)
SELECT run, node, boot, number, min(epoch) AS epoch,
  max(zxid) AS zxid, max(operations) AS operations, max(bytes) AS bytes,
  min(wall_ms) FILTER (WHERE part = 'sent') AS sent_ms,
  count_if(part = 'sent') AS times_sent, count_if(part = 'unknown') AS times_unknown,
  max(mono_ns) FILTER (WHERE part = 'acknowledged')
    - min(mono_ns) FILTER (WHERE part = 'sent') AS took_ns
FROM parts GROUP BY run, node, boot, number
"""

COMMITS: Final = Table(
    name="gold/commits",
    inputs=("silver/commit_sent", "silver/commit_acknowledged", "silver/commit_unknown"),
    schema="run STRING, node STRING, boot STRING, number BIGINT, epoch BIGINT, zxid BIGINT, "
    "operations BIGINT, bytes BIGINT, sent_ms BIGINT, times_sent BIGINT, times_unknown BIGINT, "
    "took_ns BIGINT",
    build=query(_COMMITS),
)
