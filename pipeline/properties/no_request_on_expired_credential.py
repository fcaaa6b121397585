"""A10: no request is executed after the login of its client has expired.

A login expires with its credential, or earlier, after `connections.max.reauth.ms`. The event of a
login has the wall-clock time of the expiry. The time since the login is measured with the
monotonic clock, as in Kafka, because a wall clock may jump.
"""

from __future__ import annotations

from typing import Final

from event_log.properties import RECORDED_LATER_MS_MAX
from pipeline.sql import WIDE, row_of

INPUTS: Final = ("silver/events",)
SQL: Final = f"""
WITH limited AS (
  SELECT DISTINCT run, node, boot, connection FROM events
  WHERE kind = 'authenticated' AND ends_at_ms IS NOT NULL),
seen AS (
  SELECT e.run, e.node, e.boot, e.seq, e.kind, e.connection, e.request_id, e.principal,
    e.mono_ns, e.wall_ms, e.ends_at_ms
  FROM events e LEFT SEMI JOIN limited l
    ON e.run = l.run AND e.node = l.node AND e.boot = l.boot AND e.connection = l.connection
  WHERE e.kind IN ('authenticated', 'request_received')),
joined AS (
  SELECT *, last_value(CASE WHEN kind = 'authenticated'
      THEN struct(node, boot, seq, principal, mono_ns, wall_ms, ends_at_ms) END, true)
    OVER (PARTITION BY run, node, boot, connection ORDER BY seq) AS login
  FROM seen),
requests AS (
  SELECT run, node, boot, seq, request_id, login,
    floor(({WIDE.format("mono_ns")} - login.mono_ns) / 1000000)
      - ({WIDE.format("login.ends_at_ms")} - login.wall_ms) AS late_ms
  FROM joined WHERE kind = 'request_received' AND login.ends_at_ms IS NOT NULL)
SELECT run, CASE WHEN late_ms > {RECORDED_LATER_MS_MAX} THEN request_id END AS key,
  array({row_of("login")}, {row_of("requests")}) AS rows,
  concat(request_id, ': broker ', node, ' received it ', late_ms, ' ms after the login of ',
    login.principal, ' had expired') AS sentence
FROM requests
"""
