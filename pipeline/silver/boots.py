"""The boots: lives of processes."""

from __future__ import annotations

from typing import Final

from pipeline.query import query
from pipeline.table import Table

_BOOTS: Final = """
WITH ended AS (
  SELECT DISTINCT run, ended_node AS node, ended_boot AS boot
  FROM events WHERE kind = 'node_ended'),
lives AS (
  SELECT run, node, boot, min(source) AS source, count(*) AS events,
    min(seq) AS first_seq, max(seq) AS last_seq,
    min(wall_ms) AS first_ms, max(wall_ms) AS last_ms,
    max(seq) FILTER (WHERE kind = 'stopped') AS stopped_seq,
    min_by(version, seq) FILTER (WHERE kind = 'started') AS version
  FROM events GROUP BY run, node, boot)
SELECT /*+ BROADCAST(ended) */ l.*, e.run IS NOT NULL AND l.stopped_seq IS NULL AS killed,
  l.last_seq + 1 - l.events AS missing
FROM lives l LEFT JOIN ended e ON l.run = e.run AND l.node = e.node AND l.boot = e.boot
"""

BOOTS: Final = Table(
    name="silver/boots",
    inputs=("silver/events",),
    schema="run STRING, node STRING, boot STRING, source STRING, events BIGINT, "
    "first_seq BIGINT, last_seq BIGINT, first_ms BIGINT, last_ms BIGINT, stopped_seq BIGINT, "
    "version STRING, killed BOOLEAN, missing BIGINT",
    build=query(_BOOTS),
)
