"""F8: a broker resends no request that is answered or whose time limit has passed.

KAFKA-10667: brokers forwarded requests for ever, although their clients had given up. The limit is
the brokers' `request.timeout.ms` plus a reserve. Brokers that a fault froze are not judged.
"""

from __future__ import annotations

from typing import Final

from event_log.properties import ANSWERED_LATER_MS_MAX
from pipeline.sql import FROZEN, WIDE, place_of, row_of

INPUTS: Final = ("silver/events", "gold/requests", "runs")
SQL: Final = f"""
WITH {FROZEN},
timed AS (
  SELECT /*+ BROADCAST(z), BROADCAST(n) */ s.run, s.node, s.boot, s.seq, s.request_id, s.attempt,
    r.received, r.answered, n.request_timeout_ms + {ANSWERED_LATER_MS_MAX} AS limit_ms,
    floor(({WIDE.format("s.mono_ns")} - r.received.mono_ns) / 1000000) AS late_ms
  FROM events s JOIN requests r ON s.run = r.run AND s.request_id = r.request_id
    AND s.node = r.received.node AND s.boot = r.received.boot
  JOIN runs n ON s.run = n.run
  LEFT ANTI JOIN frozen z ON s.run = z.run AND s.node = z.node
  WHERE s.kind = 'forward_sent'),
judged AS (
  SELECT *, CASE WHEN answered.seq < seq THEN 'after its response'
    WHEN late_ms > limit_ms
      THEN concat(late_ms, ' ms after its receipt; the limit is ', limit_ms, ' ms') END AS wrong
  FROM timed)
SELECT run, CASE WHEN wrong IS NOT NULL THEN {place_of("judged")} END AS key,
  array({row_of("received")}, {row_of("judged")}) AS rows,
  concat(request_id, ': broker ', node, ' sent attempt ', attempt, ' ', wrong) AS sentence
FROM judged
"""
