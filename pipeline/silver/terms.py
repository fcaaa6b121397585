"""The terms of controllers."""

from __future__ import annotations

from typing import Final

from judge.sql import EPOCH_OF
from pipeline.query import query
from pipeline.table import Table

_TERMS: Final = f"""
WITH elections AS (
  SELECT c.run, c.zxid, c.session, c.time_ms,
    get(filter(operations, o -> o.role = 'epoch' AND o.kind = 'set'), 0).data AS data,
    exists(operations, o -> o.role = 'epoch' AND o.kind = 'set') AND
    exists(operations, o -> o.role = 'controller' AND o.kind = 'create') AS is_election
  FROM commits c JOIN runs r ON c.run = r.run AND c.zxid > r.first_zxid WHERE NOT c.failed),
held AS (
  SELECT h.run, h.czxid AS zxid, h.ephemeral_owner AS session, CAST(NULL AS BIGINT) AS time_ms,
    e.data
  FROM dumps h JOIN dumps e ON h.run = e.run AND NOT h.is_final AND NOT e.is_final
    AND h.path = '/controller' AND e.path = '/controller_epoch'
  WHERE h.ephemeral_owner IS NOT NULL),
terms AS (
  SELECT run, zxid, session, time_ms, data FROM elections WHERE is_election
  UNION ALL SELECT run, zxid, session, time_ms, data FROM held)
SELECT run, zxid, session, time_ms, {EPOCH_OF.format("data")} AS epoch,
  lead(zxid, 1, {1 << 62}L) OVER (PARTITION BY run ORDER BY zxid) AS until
FROM terms
"""

TERMS: Final = Table(
    name="silver/terms",
    inputs=("silver/commits", "silver/dumps", "runs"),
    schema="run STRING, zxid BIGINT, session STRING, time_ms BIGINT, epoch BIGINT, until BIGINT",
    build=query(_TERMS),
)
