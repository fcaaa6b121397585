"""The boots: lives of processes."""

from __future__ import annotations

from typing import Final

from pipeline.query import query
from pipeline.table import Table

# Spark would sort all events to find the smallest of their texts: sources are compared as numbers.
_BOOTS: Final = """
WITH ended AS (
  SELECT DISTINCT run, ended_node AS node, ended_boot AS boot
  FROM node_ended),
versions AS (
  SELECT run, node, boot, min_by(version, seq) AS version FROM started GROUP BY run, node, boot),
lives AS (
  SELECT run, node, boot, count(*) AS events,
    min(CASE source WHEN 'client' THEN 1 WHEN 'harness' THEN 2 ELSE 3 END) AS source_number,
    min(seq) AS first_seq, max(seq) AS last_seq,
    min(wall_ms) AS first_ms, max(wall_ms) AS last_ms, max(mono_ns) AS last_ns,
    max(seq) FILTER (WHERE kind = 'stopped') AS stopped_seq
  FROM events GROUP BY run, node, boot)
SELECT /*+ BROADCAST(e), BROADCAST(v) */ l.*, v.version,
  elt(l.source_number, 'client', 'harness', 'node') AS source,
  e.run IS NOT NULL AND l.stopped_seq IS NULL AS killed, l.last_seq + 1 - l.events AS missing
FROM lives l LEFT JOIN ended e ON l.run = e.run AND l.node = e.node AND l.boot = e.boot
LEFT JOIN versions v ON l.run = v.run AND l.node = v.node AND l.boot = v.boot
"""

BOOTS: Final = Table(
    name="silver/boots",
    inputs=("silver/events", "silver/started", "silver/node_ended"),
    schema="run STRING, node STRING, boot STRING, source STRING, events BIGINT, "
    "first_seq BIGINT, last_seq BIGINT, first_ms BIGINT, last_ms BIGINT, last_ns BIGINT, "
    "stopped_seq BIGINT, "
    "version STRING, killed BOOLEAN, missing BIGINT",
    build=query(_BOOTS),
)
