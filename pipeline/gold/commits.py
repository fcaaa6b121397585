"""The multis that controllers sent."""

from __future__ import annotations

from typing import Final

from pipeline.query import query
from pipeline.table import Table

_COMMITS: Final = """
SELECT run, node, boot, number, min(epoch) AS epoch,
  max(zxid) AS zxid, max(operations) AS operations, max(bytes) AS bytes,
  min(wall_ms) FILTER (WHERE kind = 'commit_sent') AS sent_ms,
  count_if(kind = 'commit_sent') AS times_sent, count_if(kind = 'commit_unknown') AS times_unknown,
  max(mono_ns) FILTER (WHERE kind = 'commit_acknowledged')
    - min(mono_ns) FILTER (WHERE kind = 'commit_sent') AS took_ns
FROM events WHERE kind IN ('commit_sent', 'commit_acknowledged', 'commit_unknown')
GROUP BY run, node, boot, number
"""

COMMITS: Final = Table(
    name="gold/commits",
    inputs=("silver/events",),
    schema="run STRING, node STRING, boot STRING, number BIGINT, epoch BIGINT, zxid BIGINT, "
    "operations BIGINT, bytes BIGINT, sent_ms BIGINT, times_sent BIGINT, times_unknown BIGINT, "
    "took_ns BIGINT",
    build=query(_COMMITS),
)
