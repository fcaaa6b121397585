"""W7: a node acts as controller only between its election and its resignation.

The term begins with `claim_sent`, not with `became_active`, because an elected candidate commits
even while it loads its image. A claim does not count if another process became active in the same
epoch: then the candidate lost the election.

In KAFKA-4447 and KAFKA-2300, a controller that had resigned still processed queued events.
"""

from __future__ import annotations

from typing import Final

from pipeline.sql import place_of, row_of

_BOUNDS: Final = "'claim_sent', 'became_active', 'resigned'"
_ACTS: Final = "'execution_started', 'request_decided', 'commit_sent'"

INPUTS: Final = ("silver/events",)
SQL: Final = f"""
WITH relevant AS (
  SELECT run, node, boot, seq, kind, epoch FROM events
  WHERE kind IN ({_BOUNDS}) OR kind IN ({_ACTS}) AND epoch <> 0),
followed AS (
  SELECT *, last_value(CASE WHEN kind IN ({_BOUNDS}) THEN kind END, true)
    OVER (PARTITION BY run, node, boot, epoch ORDER BY seq) AS state
  FROM relevant),
elected AS (
  SELECT run, epoch, collect_set(struct(node, boot)) AS boots FROM events
  WHERE kind = 'became_active' GROUP BY run, epoch),
acts AS (
  SELECT /*+ BROADCAST(e) */ f.*, coalesce(f.state <> 'resigned', false)
    AND coalesce(array_contains(e.boots, struct(f.node, f.boot)), true) AS is_active
  FROM followed f LEFT JOIN elected e ON f.run = e.run AND f.epoch = e.epoch
  WHERE f.kind IN ({_ACTS}))
SELECT run, CASE WHEN NOT is_active THEN {place_of("acts")} END AS key,
  array({row_of("acts")}) AS rows,
  concat('node ', node, ' wrote ', kind, ' of epoch ', epoch,
    ', but was not the active controller of that epoch') AS sentence
FROM acts
"""
