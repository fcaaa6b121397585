"""L7: faults and stopped controllers explain the number of elections.

One election starts the cluster. A fault may cause two: one because of what it does, and one because
a controller on a busy machine loses its session while the cluster recovers. More elections are a
storm, as in KAFKA-6082, where each controller that had been replaced deleted its successor's
/controller.

A controller that is stopped by a signal resigns, and a node that still runs may be elected. This
happens at the end of each scenario, when all nodes are stopped.
"""

from __future__ import annotations

from typing import Final

from event_log.properties import ELECTIONS_PER_FAULT_MAX, STOP_SIGNALS

INPUTS: Final = ("silver/events", "silver/terms", "runs")
SQL: Final = f"""
WITH causes AS (
  SELECT run, count_if(kind = 'fault_injected') AS faults,
    count_if(kind = 'resigned' AND reason IN {STOP_SIGNALS}) AS stopped
  FROM events WHERE kind IN ('fault_injected', 'resigned') GROUP BY run),
counted AS (
  SELECT t.run, t.zxid, t.epoch,
    row_number() OVER (PARTITION BY t.run ORDER BY t.zxid) AS number,
    coalesce(c.faults, 0) AS faults, coalesce(c.stopped, 0) AS stopped,
    1 + {ELECTIONS_PER_FAULT_MAX} * coalesce(c.faults, 0) + coalesce(c.stopped, 0) AS allowed
  FROM terms t JOIN runs r ON t.run = r.run AND t.zxid > r.first_zxid AND r.scenario IS NOT NULL
  LEFT JOIN causes c ON t.run = c.run)
SELECT run, CASE WHEN number > allowed THEN CAST(zxid AS STRING) END AS key,
  array(concat('zxid/', zxid)) AS rows,
  concat('zxid ', zxid, ': epoch ', epoch, ' is election ', number, ' of the run; ', faults,
    ' faults and ', stopped, ' stopped controllers explain at most ', allowed) AS sentence
FROM counted
"""
