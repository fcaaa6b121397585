"""Three tables: multis of controllers, transactions that write metadata, terms of controllers."""

from __future__ import annotations

from typing import Final

from judge.sql import IS_DIRECT
from pipeline.table import Table, query

# One row for each transaction that writes metadata. A transaction is omitted if all its writes of
# metadata are direct writes that W6 (only_controllers_write) allows.
_ADMIN_WRITES: Final = f"""
SELECT /*+ BROADCAST(s) */ c.run, c.zxid, c.session, c.kind,
  get(filter(c.operations, o -> o.role = 'admin'
    AND o.kind IN ('create', 'set', 'delete', 'set_acl')), 0).path AS path,
  exists(c.operations, o -> o.kind = 'check' AND o.role = 'epoch') AS checked,
  exists(c.operations, o -> o.kind = 'check' AND o.role = 'epoch' AND o.version >= 0) AS fenced
FROM commits c JOIN runs r ON c.run = r.run AND c.zxid > r.first_zxid
LEFT JOIN sessions s ON c.run = s.run AND c.session = s.session
WHERE NOT c.failed AND exists(c.operations, o -> o.role = 'admin'
  AND o.kind IN ('create', 'set', 'delete', 'set_acl')
  AND NOT (coalesce(s.writes_directly, false) AND {IS_DIRECT}))
"""

_COMMITS: Final = """
SELECT run, node, boot, number, min(epoch) AS epoch,
  max(zxid) AS zxid, max(operations) AS operations, max(bytes) AS bytes,
  min(wall_ms) FILTER (WHERE kind = 'commit_sent') AS sent_ms,
  count_if(kind = 'commit_sent') AS times_sent, count_if(kind = 'commit_unknown') AS times_unknown,
  max(mono_ns) FILTER (WHERE kind = 'commit_answered')
    - min(mono_ns) FILTER (WHERE kind = 'commit_sent') AS took_ns
FROM events WHERE kind IN ('commit_sent', 'commit_answered', 'commit_unknown')
GROUP BY run, node, boot, number
"""

# A term has the times from which failover times are computed: when its controller became active,
# when the term ended (the resignation, or the last event of its process), and when its session was
# closed in ZooKeeper's log.
_TERMS: Final = """
WITH active AS (
  SELECT run, node, boot, epoch, min(wall_ms) AS active_ms, min(elected_ms) AS elected_ms,
    min(loaded_ms) AS loaded_ms FROM events WHERE kind = 'became_active'
  GROUP BY run, node, boot, epoch),
resigned AS (
  SELECT run, node, boot, epoch, min(wall_ms) AS resigned_ms, min_by(reason, seq) AS reason
  FROM events WHERE kind = 'resigned' GROUP BY run, node, boot, epoch),
closed AS (
  SELECT run, session, min(time_ms) AS closed_ms FROM commits
  WHERE kind = 'close_session' GROUP BY run, session),
writes AS (
  SELECT w.run, t.epoch, count(*) AS writes FROM admin_writes w
  JOIN terms t ON w.run = t.run AND w.session = t.session GROUP BY w.run, t.epoch),
decided AS (
  SELECT run, epoch, count(*) AS decisions, min(wall_ms) AS first_decision_ms
  FROM events WHERE kind = 'request_decided' GROUP BY run, epoch),
known AS (
  SELECT t.run, t.epoch, t.zxid, t.until, t.session, t.time_ms AS elected_at_ms, s.node, s.boot,
    a.active_ms, a.elected_ms, a.loaded_ms, r.resigned_ms, r.reason, c.closed_ms,
    coalesce(w.writes, 0) AS writes, coalesce(d.decisions, 0) AS decisions, d.first_decision_ms
  FROM terms t
  LEFT JOIN sessions s ON t.run = s.run AND t.session = s.session
  LEFT JOIN active a ON t.run = a.run AND s.node = a.node AND s.boot = a.boot AND t.epoch = a.epoch
  LEFT JOIN resigned r
    ON t.run = r.run AND s.node = r.node AND s.boot = r.boot AND t.epoch = r.epoch
  LEFT JOIN closed c ON t.run = c.run AND t.session = c.session
  LEFT JOIN writes w ON t.run = w.run AND t.epoch = w.epoch
  LEFT JOIN decided d ON t.run = d.run AND t.epoch = d.epoch),
last_seen AS (
  SELECT b.run, b.node, b.boot, b.last_ms FROM boots b)
SELECT k.run, k.epoch, k.node, k.boot, k.session, k.zxid, k.until, k.elected_at_ms, k.active_ms,
  k.elected_ms, k.loaded_ms, k.resigned_ms, k.reason, k.closed_ms, l.last_ms AS last_seen_ms,
  k.writes, k.decisions, k.first_decision_ms,
  coalesce(least(k.resigned_ms, l.last_ms), l.last_ms) AS ended_ms
FROM known k LEFT JOIN last_seen l ON k.run = l.run AND k.node = l.node AND k.boot = l.boot
"""

ADMIN_WRITES: Final = Table(
    name="gold/admin_writes",
    inputs=("silver/commits", "silver/sessions", "runs"),
    schema="run STRING, zxid BIGINT, session STRING, kind STRING, path STRING, checked BOOLEAN, "
    "fenced BOOLEAN",
    build=query(_ADMIN_WRITES),
)
COMMITS: Final = Table(
    name="gold/commits",
    inputs=("silver/events",),
    schema="run STRING, node STRING, boot STRING, number BIGINT, epoch BIGINT, zxid BIGINT, "
    "operations BIGINT, bytes BIGINT, sent_ms BIGINT, times_sent BIGINT, times_unknown BIGINT, "
    "took_ns BIGINT",
    build=query(_COMMITS),
)
CONTROLLER_TERMS: Final = Table(
    name="gold/controller_terms",
    inputs=(
        *("silver/events", "silver/commits", "silver/terms", "silver/sessions", "silver/boots"),
        "gold/admin_writes",
    ),
    schema="run STRING, epoch BIGINT, node STRING, boot STRING, session STRING, zxid BIGINT, "
    "until BIGINT, elected_at_ms BIGINT, active_ms BIGINT, elected_ms DOUBLE, loaded_ms DOUBLE, "
    "resigned_ms BIGINT, reason STRING, closed_ms BIGINT, last_seen_ms BIGINT, writes BIGINT, "
    "decisions BIGINT, first_decision_ms BIGINT, ended_ms BIGINT",
    build=query(_TERMS),
)
