"""F5: no client gets NOT_CONTROLLER (41) for a forwarded request (KAFKA-12677)."""

from __future__ import annotations

from typing import Final

from pipeline.sql import row_of

INPUTS: Final = ("silver/events", "gold/answers")
SQL: Final = f"""
WITH relayed AS (
  SELECT run, request_id, max(decided_row) AS decided_row FROM answers
  WHERE error = 41 OR exists(elements, e -> e.error = 41) GROUP BY run, request_id),
judged AS (
  SELECT a.run, a.request_id, {row_of("a")} AS answered_row, r.decided_row,
    coalesce(a.error = 41, false) OR r.request_id IS NOT NULL AS relayed
  FROM events a LEFT JOIN relayed r ON a.run = r.run AND a.request_id = r.request_id
  WHERE a.kind = 'answered' AND a.route = 'FORWARD' AND NOT a.closed)
SELECT run, CASE WHEN relayed THEN request_id END AS key,
  array_compact(array(answered_row, decided_row)) AS rows,
  concat(request_id, ': the client got NOT_CONTROLLER') AS sentence
FROM judged
"""
