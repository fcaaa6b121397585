"""W5: /controller is deleted only by its owner.

It is deleted when the owner's session ends, or in a transaction that checks the epoch.
"""

from __future__ import annotations

from typing import Final

INPUTS: Final = ("silver/commits", "silver/dumps", "runs")
SQL: Final = """
WITH touched AS (
  SELECT c.run, c.zxid, c.session, c.kind AS how,
    exists(operations, o -> o.kind = 'check' AND o.role = 'epoch' AND o.version >= 0) AS checked,
    operations
  FROM commits c JOIN runs r ON c.run = r.run AND c.zxid > r.first_zxid
  WHERE NOT c.failed AND exists(operations, o -> o.role = 'controller')),
each AS (
  SELECT run, zxid, session, how, checked, position, o.kind AS kind
  FROM touched LATERAL VIEW posexplode(operations) x AS position, o
  WHERE o.role = 'controller' AND o.kind IN ('create', 'delete')
  UNION ALL
  SELECT run, czxid, ephemeral_owner, 'first', true, -1, 'held' FROM dumps
  WHERE NOT is_final AND path = '/controller'),
owned AS (
  SELECT *, last_value(CASE WHEN kind <> 'delete' THEN struct(session, zxid) END, true)
    OVER (PARTITION BY run ORDER BY zxid, position
    ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS owner
  FROM each),
judged AS (
  SELECT *, kind = 'create' OR (session <=> owner.session AND (how = 'close_session' OR checked))
    AS good FROM owned WHERE kind <> 'held')
SELECT run, CASE WHEN NOT good THEN CAST(zxid AS STRING) END AS key,
  array(concat('zxid/', zxid), concat('zxid/', coalesce(owner.zxid, 0))) AS rows,
  concat('zxid ', zxid, ': session ', session, ' deleted /controller',
    CASE WHEN session <=> owner.session THEN ' without checking the epoch'
         ELSE concat(', which belongs to ', coalesce(concat('session ', owner.session),
           'no session')) END) AS sentence
FROM judged
"""
