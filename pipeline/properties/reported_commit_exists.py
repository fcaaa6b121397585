"""K4: every commit that a controller reports is in ZooKeeper's transaction log.

A controller that takes a lost reply for a success reports a commit that ZooKeeper does not have.
"""

from __future__ import annotations

from typing import Final

from pipeline.sql import place_of, row_of

INPUTS: Final = ("silver/events", "silver/commits", "runs")
SQL: Final = f"""
WITH applied AS (
  SELECT c.run, c.zxid, c.session AS written_by FROM commits c
  JOIN runs r ON c.run = r.run AND c.zxid > r.first_zxid WHERE NOT c.failed),
reported AS (
  SELECT e.run, e.node, e.boot, e.seq, e.number, e.zxid, e.session, a.written_by
  FROM events e JOIN runs r ON e.run = r.run AND r.logs
  LEFT JOIN applied a ON e.run = a.run AND e.zxid = a.zxid
  WHERE e.kind = 'commit_answered')
SELECT run, CASE WHEN NOT session <=> written_by THEN {place_of("reported")} END AS key,
  array({row_of("reported")}) AS rows,
  concat('node ', node, ' reports that commit ', number, ' of session ', session, ' has zxid ',
    zxid, ', but ', CASE WHEN written_by IS NULL THEN 'ZooKeeper applied no such transaction'
      ELSE concat('session ', written_by, ' wrote that transaction') END) AS sentence
FROM reported
"""
