"""The ZooKeeper sessions of nodes."""

from __future__ import annotations

from typing import Final

from pipeline.query import query
from pipeline.table import Table

# `writes_directly`: a broker below the bridge release (3.4) writes some metadata in this session.
_SESSIONS: Final = r"""
WITH seen AS (
  SELECT run, session, node, boot, role, false AS is_lost FROM session_opened
  UNION ALL SELECT run, session, node, boot, role, true FROM session_lost),
opened AS (
  SELECT run, session, min(struct(node, boot)).node AS node, min(struct(node, boot)).boot AS boot,
    min_by(role, struct(node, boot)) FILTER (WHERE NOT is_lost) AS role,
    bool_or(is_lost) AS was_lost
  FROM seen GROUP BY run, session HAVING bool_or(NOT is_lost)),
levels AS (
  SELECT run, node, boot, coalesce(bool_or(
    struct(CAST(regexp_extract(level, '^([0-9]{1,3})[.]([0-9]{1,3})', 1) AS INT),
      CAST(regexp_extract(level, '^([0-9]{1,3})[.]([0-9]{1,3})', 2) AS INT)) < struct(3, 4)
  ) FILTER (WHERE level RLIKE '^[0-9]{1,3}[.][0-9]{1,3}'), false) AS below
  FROM protocol_level GROUP BY run, node, boot)
SELECT /*+ BROADCAST(l) */ o.*, coalesce(o.role = 'direct' AND l.below, false) AS writes_directly
FROM opened o LEFT JOIN levels l ON o.run = l.run AND o.node = l.node AND o.boot = l.boot
"""

SESSIONS: Final = Table(
    name="silver/sessions",
    inputs=("silver/session_opened", "silver/session_lost", "silver/protocol_level"),
    schema="run STRING, session STRING, node STRING, boot STRING, role STRING, was_lost BOOLEAN, "
    "writes_directly BOOLEAN",
    build=query(_SESSIONS),
)
