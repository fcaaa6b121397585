"""W4: each election raises the epoch by one, in the transaction that makes /controller."""

from __future__ import annotations

from typing import Final

from pipeline.property import Property
from pipeline.silver.boots import EPOCH_OF

PROPERTY: Final = Property(
    id="W4",
    inputs=("silver/commits", "silver/dumps", "runs"),
    sql=f"""
WITH candidates AS (
  SELECT c.run, c.zxid, c.session,
    exists(operations, o -> o.role = 'controller' AND o.kind = 'create') AS made,
    get(filter(operations, o -> o.role = 'epoch' AND o.kind = 'set'), 0) AS raised
  FROM commits c JOIN runs r ON c.run = r.run AND c.zxid > r.first_zxid WHERE NOT c.failed),
relevant AS (
  SELECT run, zxid, session, made, raised IS NOT NULL AS is_raised, raised.data AS data,
    CASE WHEN raised IS NOT NULL THEN {EPOCH_OF.format("coalesce(raised.data, '')")} END AS epoch
  FROM candidates WHERE made OR raised IS NOT NULL),
first AS (
  SELECT run, max({EPOCH_OF.format("coalesce(data, '')")}) AS epoch FROM dumps
  WHERE NOT is_final AND path = '/controller_epoch' GROUP BY run),
followed AS (
  SELECT r.*, coalesce(last_value(r.epoch, true) OVER (PARTITION BY r.run ORDER BY r.zxid
    ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING), f.epoch, 0) AS before
  FROM relevant r LEFT JOIN first f ON r.run = f.run),
wrong AS (
  SELECT *, CASE
    WHEN NOT made THEN 'the epoch was set without making /controller'
    WHEN NOT is_raised THEN '/controller was made without raising the epoch'
    WHEN epoch <> before + 1
      THEN concat('epoch ', before, ' was followed by ', coalesce(data, 'None')) END AS how
  FROM followed)
SELECT run, CASE WHEN how IS NOT NULL THEN CAST(zxid AS STRING) END AS key,
  array(concat('zxid/', zxid)) AS rows,
  concat('zxid ', zxid, ', session ', session, ': ', how) AS sentence
FROM wrong
""",
)
