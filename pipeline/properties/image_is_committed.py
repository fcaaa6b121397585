"""R6: an image has no metadata that ZooKeeper did not commit.

The zxid of each image must be the zxid of a transaction. The first zxid of a ZooKeeper leader's
epoch is exempt, because ZooKeeper writes no transaction with it.
"""

from __future__ import annotations

from typing import Final

from pipeline.sql import place_of, row_of

INPUTS: Final = ("silver/events", "silver/commits", "runs")
SQL: Final = f"""
WITH known AS (SELECT DISTINCT run, zxid FROM commits),
images AS (
  SELECT /*+ BROADCAST(r) */ e.run, e.node, e.boot, e.seq, e.side, e.zxid,
    k.run IS NOT NULL AS is_committed
  FROM events e JOIN runs r ON e.run = r.run AND r.logs AND e.zxid > r.first_zxid
  LEFT JOIN known k ON e.run = k.run AND e.zxid = k.zxid
  WHERE e.kind = 'image_advanced' AND e.zxid % {1 << 32}L <> 0)
SELECT run, CASE WHEN NOT is_committed THEN {place_of("images")} END AS key,
  array({row_of("images")}) AS rows,
  concat('the ', side, ' image of node ', node, ' has zxid ', zxid,
    ', which is not in ZooKeeper''s transaction log') AS sentence
FROM images
"""
