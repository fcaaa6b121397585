"""The number of elements by response (ok, fail, info) and effect (none, once, twice).

A forwarded request that was not answered counts as one element: the one with the most effects. The
controller may divide a request among several transactions; each element then has its effect in only
one of them. The report shows the nine counts and marks those that must be 0, such as ok without an
effect.
"""

from __future__ import annotations

from typing import Final

from pipeline.query import query
from pipeline.table import Table

_EFFECTS: Final = """
WITH effects AS (
  SELECT run, request_id, element, count(DISTINCT zxid) AS times
  FROM outcomes WHERE error = 0 GROUP BY run, request_id, element),
responses AS (
  SELECT run, CASE WHEN error = 0 THEN 'ok' WHEN error IN (-1, 7, 13, 41) THEN 'info'
    ELSE 'fail' END AS response, size(done) AS times
  FROM decisions WHERE NOT validate_only AND NOT unchanged
  UNION ALL
  SELECT r.run, 'info', coalesce(max(e.times), 0)
  FROM requests r LEFT JOIN effects e ON r.run = e.run AND r.request_id = e.request_id
  WHERE r.received.route = 'FORWARD' AND (r.responded IS NULL OR r.responded.closed)
  GROUP BY r.run, r.request_id)
SELECT run, response, CASE WHEN times = 0 THEN 'none' WHEN times = 1 THEN 'once' ELSE 'twice' END
  AS effect, count(*) AS elements
FROM responses GROUP BY run, response, 3
"""

EFFECTS: Final = Table(
    name="gold/effects",
    inputs=("gold/decisions", "gold/requests", "silver/outcomes"),
    schema="run STRING, response STRING, effect STRING, elements BIGINT",
    build=query(_EFFECTS),
)
