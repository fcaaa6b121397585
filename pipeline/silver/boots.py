"""Three tables: boots (lives of processes), ZooKeeper sessions and terms of controllers."""

from __future__ import annotations

from typing import Final

from judge.sql import EPOCH_OF
from pipeline.table import Table, query

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

# `writes_directly`: a broker below the bridge release (3.4) writes some metadata in this session.
_SESSIONS: Final = r"""
WITH opened AS (
  SELECT run, session, min(struct(node, boot)).node AS node, min(struct(node, boot)).boot AS boot,
    min_by(role, struct(node, boot)) FILTER (WHERE kind = 'session_opened') AS role,
    coalesce(bool_or(kind = 'session_lost'), false) AS was_lost
  FROM events WHERE kind IN ('session_opened', 'session_lost')
  GROUP BY run, session HAVING bool_or(kind = 'session_opened')),
levels AS (
  SELECT run, node, boot, coalesce(bool_or(
    struct(CAST(regexp_extract(level, '^([0-9]{1,3})[.]([0-9]{1,3})', 1) AS INT),
      CAST(regexp_extract(level, '^([0-9]{1,3})[.]([0-9]{1,3})', 2) AS INT)) < struct(3, 4)
  ) FILTER (WHERE level RLIKE '^[0-9]{1,3}[.][0-9]{1,3}'), false) AS below
  FROM events WHERE kind = 'protocol_level' GROUP BY run, node, boot)
SELECT /*+ BROADCAST(l) */ o.*, coalesce(o.role = 'direct' AND l.below, false) AS writes_directly
FROM opened o LEFT JOIN levels l ON o.run = l.run AND o.node = l.node AND o.boot = l.boot
"""

_TERMS: Final = f"""
WITH elections AS (
  SELECT c.run, c.zxid, c.session, c.time_ms,
    get(filter(operations, o -> o.role = 'epoch' AND o.kind = 'set'), 0).data AS data,
    exists(operations, o -> o.role = 'epoch' AND o.kind = 'set') AND
    exists(operations, o -> o.role = 'controller' AND o.kind = 'create') AS is_election
  FROM commits c JOIN runs r ON c.run = r.run AND c.zxid > r.first_zxid WHERE NOT c.failed),
held AS (
  SELECT h.run, h.czxid AS zxid, h.ephemeral_owner AS session, CAST(NULL AS BIGINT) AS time_ms,
    e.data
  FROM dumps h JOIN dumps e ON h.run = e.run AND NOT h.is_final AND NOT e.is_final
    AND h.path = '/controller' AND e.path = '/controller_epoch'
  WHERE h.ephemeral_owner IS NOT NULL),
terms AS (
  SELECT run, zxid, session, time_ms, data FROM elections WHERE is_election
  UNION ALL SELECT run, zxid, session, time_ms, data FROM held)
SELECT run, zxid, session, time_ms, {EPOCH_OF.format("data")} AS epoch,
  lead(zxid, 1, {1 << 62}L) OVER (PARTITION BY run ORDER BY zxid) AS until
FROM terms
"""

BOOTS: Final = Table(
    name="silver/boots",
    inputs=("silver/events",),
    schema="run STRING, node STRING, boot STRING, source STRING, events BIGINT, "
    "first_seq BIGINT, last_seq BIGINT, first_ms BIGINT, last_ms BIGINT, stopped_seq BIGINT, "
    "version STRING, killed BOOLEAN, missing BIGINT",
    build=query(_BOOTS),
)
SESSIONS: Final = Table(
    name="silver/sessions",
    inputs=("silver/events",),
    schema="run STRING, session STRING, node STRING, boot STRING, role STRING, was_lost BOOLEAN, "
    "writes_directly BOOLEAN",
    build=query(_SESSIONS),
)
TERMS: Final = Table(
    name="silver/terms",
    inputs=("silver/commits", "silver/dumps", "runs"),
    schema="run STRING, zxid BIGINT, session STRING, time_ms BIGINT, epoch BIGINT, until BIGINT",
    build=query(_TERMS),
)
