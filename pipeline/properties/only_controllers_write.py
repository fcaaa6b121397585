"""W6: controllers write metadata, brokers write their registration, others write nothing."""

from __future__ import annotations

from typing import Final

from event_log.commits import DIRECT_WRITERS
from pipeline.gold.commits import IS_DIRECT

INPUTS: Final = ("silver/commits", "silver/sessions", "runs")
SQL: Final = f"""
WITH written AS (
  SELECT c.run, c.zxid, c.session,
    filter(c.operations, o -> o.kind IN ('create', 'set', 'delete', 'set_acl')
      AND o.role <> '') AS writes
  FROM commits c JOIN runs r ON c.run = r.run AND c.zxid > r.first_zxid
  WHERE NOT c.failed AND c.kind <> 'close_session'),
judged AS (
  SELECT /*+ BROADCAST(s) */ w.run, w.zxid, w.session, s.node, s.role, w.writes,
    get(filter(w.writes, o -> NOT coalesce(s.node IS NOT NULL AND (
      o.role = 'start_up' OR
      (o.role = 'registration' AND CASE
        WHEN startswith(o.path, '{DIRECT_WRITERS}') THEN s.writes_directly
          AND substring_index(substring_index(o.path, '/', -1), '-', 1) = s.node
        ELSE s.role = 'broker' AND substring_index(o.path, '/', -1) = s.node END) OR
      (o.role = 'admin' AND s.writes_directly AND {IS_DIRECT}) OR
      (o.role = 'epoch' AND o.kind = 'create') OR
      (o.role <> 'registration' AND s.role = 'controller')), false)), 0).path AS wrong
  FROM written w LEFT JOIN sessions s ON w.run = s.run AND w.session = s.session
  WHERE size(w.writes) > 0)
SELECT run, CASE WHEN wrong IS NOT NULL THEN CAST(zxid AS STRING) END AS key,
  array(concat('zxid/', zxid)) AS rows,
  concat('zxid ', zxid, ': session ', session, ' of ', CASE WHEN node IS NULL THEN 'no known broker'
    ELSE concat('broker ', node, ', role ', role, ',') END, ' wrote ', wrong) AS sentence
FROM judged
"""
