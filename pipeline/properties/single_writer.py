"""W1: every metadata write is made by the session that holds the controller epoch."""

from __future__ import annotations

from typing import Final

INPUTS: Final = ("gold/admin_writes", "silver/terms")
SQL: Final = """
WITH held AS (
  SELECT run, session, collect_list(struct(zxid, until)) AS spans FROM terms GROUP BY run, session),
judged AS (
  SELECT /*+ BROADCAST(h) */ w.run, w.zxid, w.session, w.path,
    coalesce(exists(h.spans, s -> w.zxid >= s.zxid AND w.zxid < s.until), false) AS good
  FROM admin_writes w LEFT JOIN held h ON w.run = h.run AND w.session = h.session),
terms_in_order AS (
  SELECT run, array_sort(collect_list(struct(zxid, session, epoch))) AS all
  FROM terms GROUP BY run),
-- The holder is looked up only for violations.
wrong AS (
  SELECT /*+ BROADCAST(o) */ j.*, CASE WHEN NOT j.good THEN
    get(filter(o.all, t -> t.zxid <= j.zxid), size(filter(o.all, t -> t.zxid <= j.zxid)) - 1)
    END AS holder
  FROM judged j LEFT JOIN terms_in_order o ON j.run = o.run)
SELECT run, CASE WHEN NOT good THEN CAST(zxid AS STRING) END AS key,
  CASE WHEN holder IS NULL THEN array(concat('zxid/', zxid))
       ELSE array(concat('zxid/', zxid), concat('zxid/', holder.zxid)) END AS rows,
  concat('zxid ', zxid, ': session ', session, ' wrote ', path, ', but ',
    CASE WHEN holder IS NULL THEN 'no session held the controller epoch'
         ELSE concat('session ', holder.session, ' held controller epoch ', holder.epoch) END)
    AS sentence
FROM wrong
"""
