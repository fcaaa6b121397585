"""K7: a node resigns as controller before it applies metadata of a later controller.

Two nodes that both act as controller confuse clients and operators, even if only one can write.
"""

from __future__ import annotations

from typing import Final

from pipeline.sql import place_of, row_of

INPUTS: Final = ("silver/events",)
SQL: Final = f"""
WITH active AS (
  SELECT a.run, a.node, a.boot, a.epoch, a.seq, min(r.seq) AS until
  FROM events a LEFT JOIN events r ON a.run = r.run AND a.node = r.node AND a.boot = r.boot
    AND r.kind = 'resigned' AND a.epoch = r.epoch AND a.seq < r.seq
  WHERE a.kind = 'became_active' GROUP BY a.run, a.node, a.boot, a.epoch, a.seq),
terms_of AS (
  SELECT run, node, boot, array_sort(collect_list(struct(epoch, seq, until, node, boot))) AS own
  FROM active GROUP BY run, node, boot),
images AS (
  SELECT /*+ BROADCAST(t) */ e.run, e.node, e.boot, e.seq, e.epoch,
    filter(t.own, x -> x.epoch < e.epoch AND x.seq < e.seq
      AND coalesce(e.seq < x.until, true)) AS held
  FROM events e LEFT JOIN terms_of t ON e.run = t.run AND e.node = t.node AND e.boot = t.boot
  WHERE e.kind = 'image_advanced' AND e.side = 'broker'),
judged AS (SELECT run, node, boot, seq, epoch, get(held, size(held) - 1) AS last FROM images)
SELECT run, CASE WHEN last IS NOT NULL THEN {place_of("judged")} END AS key,
  array({row_of("last")}, {row_of("judged")}) AS rows,
  concat('broker ', node, ' applied metadata of epoch ', epoch,
    ', but had not resigned as controller of epoch ', last.epoch) AS sentence
FROM judged
"""
