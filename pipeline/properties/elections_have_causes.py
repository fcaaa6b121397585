"""L7: there are not more elections than the faults of a scenario explain.

One election starts the cluster. A fault may cause two: one because of what it does, and one because
a busy machine loses a session while the cluster recovers. More elections are a storm, as in
KAFKA-6082, where each controller that had been replaced deleted its successor's /controller.
"""

from __future__ import annotations

from typing import Final

from event_log.properties import ELECTIONS_PER_FAULT_MAX

INPUTS: Final = ("silver/events", "silver/terms", "runs")
SQL: Final = f"""
WITH injected AS (
  SELECT run, count(*) AS faults FROM events WHERE kind = 'fault_injected' GROUP BY run),
counted AS (
  SELECT t.run, t.zxid, t.epoch,
    row_number() OVER (PARTITION BY t.run ORDER BY t.zxid) AS number,
    coalesce(i.faults, 0) AS faults,
    1 + {ELECTIONS_PER_FAULT_MAX} * coalesce(i.faults, 0) AS allowed
  FROM terms t JOIN runs r ON t.run = r.run AND t.zxid > r.first_zxid AND r.scenario IS NOT NULL
  LEFT JOIN injected i ON t.run = i.run)
SELECT run, CASE WHEN number > allowed THEN CAST(zxid AS STRING) END AS key,
  array(concat('zxid/', zxid)) AS rows,
  concat('zxid ', zxid, ': epoch ', epoch, ' is election ', number, ' of the run; ', faults,
    ' faults explain at most ', allowed) AS sentence
FROM counted
"""
