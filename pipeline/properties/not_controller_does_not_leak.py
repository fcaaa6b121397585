"""F5: no client of a forwarded request is told NOT_CONTROLLER (41), KAFKA-12677.

Where routing decided so (route NOT_CONTROLLER: an old client, or forwarding switched off), it may.
"""

from __future__ import annotations

from typing import Final

from pipeline.property import Property, row_of

PROPERTY: Final = Property(
    id="F5",
    inputs=("silver/events", "gold/answers"),
    sql=f"""
WITH relayed AS (
  SELECT run, request_id, max(decided_row) AS decided_row FROM answers
  WHERE error = 41 OR exists(elements, e -> e.error = 41) GROUP BY run, request_id),
judged AS (
  SELECT a.run, a.request_id, {row_of("a")} AS answered_row, r.decided_row,
    coalesce(a.error = 41, false) OR r.request_id IS NOT NULL AS leaked
  FROM events a LEFT JOIN relayed r ON a.run = r.run AND a.request_id = r.request_id
  WHERE a.kind = 'answered' AND a.route = 'FORWARD' AND NOT a.closed)
SELECT run, CASE WHEN leaked THEN request_id END AS key,
  array_compact(array(answered_row, decided_row)) AS rows,
  concat(request_id, ': the client was told NOT_CONTROLLER') AS sentence
FROM judged
""",
)
