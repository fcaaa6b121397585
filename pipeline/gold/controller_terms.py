"""The terms of controllers, with the times from which failover times are computed.

These are the times when the controller became active, when the term ended (the resignation, or the
last event of its process), and when its session was closed in ZooKeeper's log.
"""

from __future__ import annotations

from typing import Final

from pipeline.query import query
from pipeline.table import Table

_TERMS: Final = """
WITH active AS (
  SELECT run, node, boot, epoch, min(wall_ms) AS active_ms, min(elected_ms) AS elected_ms,
    min(loaded_ms) AS loaded_ms FROM became_active
  GROUP BY run, node, boot, epoch),
resignations AS (
  SELECT run, node, boot, epoch, min(wall_ms) AS resigned_ms, min_by(reason, seq) AS reason
  FROM resigned GROUP BY run, node, boot, epoch),
closed AS (
  SELECT run, session, min(time_ms) AS closed_ms FROM commits
  WHERE kind = 'close_session' GROUP BY run, session),
writes AS (
  SELECT w.run, t.epoch, count(*) AS writes FROM admin_writes w
  JOIN terms t ON w.run = t.run AND w.session = t.session GROUP BY w.run, t.epoch),
decided AS (
  SELECT run, epoch, count(*) AS decisions, min(wall_ms) AS first_decision_ms,
    min_by(request_id, wall_ms) AS first_request
  FROM request_decided GROUP BY run, epoch),
received AS (
  SELECT d.run, d.epoch, min(e.wall_ms) AS first_received_ms
  FROM decided d JOIN request_received e ON d.run = e.run AND d.first_request = e.request_id
  GROUP BY d.run, d.epoch),
known AS (
  SELECT t.run, t.epoch, t.zxid, t.until, t.session, t.time_ms AS elected_at_ms, s.node, s.boot,
    a.active_ms, a.elected_ms, a.loaded_ms, r.resigned_ms, r.reason, c.closed_ms,
    coalesce(w.writes, 0) AS writes, coalesce(d.decisions, 0) AS decisions, d.first_decision_ms,
    v.first_received_ms
  FROM terms t
  LEFT JOIN sessions s ON t.run = s.run AND t.session = s.session
  LEFT JOIN active a ON t.run = a.run AND s.node = a.node AND s.boot = a.boot AND t.epoch = a.epoch
  LEFT JOIN resignations r
    ON t.run = r.run AND s.node = r.node AND s.boot = r.boot AND t.epoch = r.epoch
  LEFT JOIN closed c ON t.run = c.run AND t.session = c.session
  LEFT JOIN writes w ON t.run = w.run AND t.epoch = w.epoch
  LEFT JOIN decided d ON t.run = d.run AND t.epoch = d.epoch
  LEFT JOIN received v ON t.run = v.run AND t.epoch = v.epoch),
last_seen AS (
  SELECT b.run, b.node, b.boot, b.last_ms FROM boots b)
SELECT k.run, k.epoch, k.node, k.boot, k.session, k.zxid, k.until, k.elected_at_ms, k.active_ms,
  k.elected_ms, k.loaded_ms, k.resigned_ms, k.reason, k.closed_ms, l.last_ms AS last_seen_ms,
  k.writes, k.decisions, k.first_decision_ms,
  coalesce(least(k.resigned_ms, l.last_ms), l.last_ms) AS ended_ms, k.first_received_ms
FROM known k LEFT JOIN last_seen l ON k.run = l.run AND k.node = l.node AND k.boot = l.boot
"""

CONTROLLER_TERMS: Final = Table(
    name="gold/controller_terms",
    inputs=(
        *(
            "silver/became_active",
            "silver/resigned",
            "silver/request_decided",
            "silver/request_received",
        ),
        *("silver/commits", "silver/terms", "silver/sessions", "silver/boots"),
        "gold/admin_writes",
    ),
    schema="run STRING, epoch BIGINT, node STRING, boot STRING, session STRING, zxid BIGINT, "
    "until BIGINT, elected_at_ms BIGINT, active_ms BIGINT, elected_ms DOUBLE, loaded_ms DOUBLE, "
    "resigned_ms BIGINT, reason STRING, closed_ms BIGINT, last_seen_ms BIGINT, writes BIGINT, "
    "decisions BIGINT, first_decision_ms BIGINT, ended_ms BIGINT, "
    "first_received_ms BIGINT",
    build=query(_TERMS),
)
