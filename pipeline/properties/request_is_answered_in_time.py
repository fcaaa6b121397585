"""L1: a forwarded request is answered, or its connection ends, within its time limit.

The limit is the brokers' `request.timeout.ms` plus a reserve. A frozen process answers nothing, so
requests to brokers that a fault froze are not judged.
"""

from __future__ import annotations

from typing import Final

from event_log.properties import ANSWERED_LATER_MS_MAX
from pipeline.sql import FROZEN, WIDE, row_of

INPUTS: Final = ("silver/events", "gold/requests", "runs")
SQL: Final = f"""
WITH {FROZEN},
closed AS (
  SELECT run, node, boot, connection, max_by(mono_ns, seq) AS at_ns FROM events
  WHERE kind = 'disconnected' GROUP BY run, node, boot, connection),
lives AS (
  SELECT run, node, boot, max(mono_ns) AS last_ns FROM events
  WHERE source <> 'client' GROUP BY run, node, boot),
forwarded AS (
  SELECT run, request_id, received.node AS node, received.boot AS boot, received.seq AS seq,
    received.connection AS connection, received.mono_ns AS began_ns, answered.mono_ns AS answered_ns
  FROM requests WHERE received.route = 'FORWARD'),
timed AS (
  SELECT /*+ BROADCAST(z), BROADCAST(l), BROADCAST(n) */
    f.run, f.request_id, f.node, f.boot, f.seq,
    n.request_timeout_ms + {ANSWERED_LATER_MS_MAX} AS limit_ms,
    floor(({WIDE.format("coalesce(f.answered_ns, c.at_ns, l.last_ns)")} - f.began_ns) / 1000000)
      AS took_ms
  FROM forwarded f JOIN runs n ON f.run = n.run
  LEFT ANTI JOIN frozen z ON f.run = z.run AND f.node = z.node
  LEFT JOIN closed c ON f.run = c.run AND f.node = c.node AND f.boot = c.boot
    AND f.connection = c.connection
  LEFT JOIN lives l ON f.run = l.run AND f.node = l.node AND f.boot = l.boot)
SELECT run, CASE WHEN took_ms > limit_ms THEN request_id END AS key,
  array({row_of("timed")}) AS rows,
  concat(request_id, ': for ', took_ms, ' ms broker ', node,
    ' neither answered it nor lost its connection; the limit is ', limit_ms, ' ms') AS sentence
FROM timed
"""
