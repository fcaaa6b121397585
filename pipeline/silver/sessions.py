"""The ZooKeeper sessions of nodes."""

from __future__ import annotations

from typing import Final

from pipeline.query import query
from pipeline.table import Table

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

SESSIONS: Final = Table(
    name="silver/sessions",
    inputs=("silver/events",),
    schema="run STRING, session STRING, node STRING, boot STRING, role STRING, was_lost BOOLEAN, "
    "writes_directly BOOLEAN",
    build=query(_SESSIONS),
)
