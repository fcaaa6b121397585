"""The terms of controllers. In one with `is_kraft`, a KRaft controller migrates the metadata."""

from __future__ import annotations

from typing import Final

from judge.sql import EPOCH_OF
from pipeline.query import query
from pipeline.table import Table

_TERMS: Final = f"""
WITH elections AS (
  SELECT /*+ BROADCAST(s) */ c.run, c.zxid, c.session, c.time_ms,
    get(filter(operations, o -> o.role = 'epoch' AND o.kind = 'set'), 0).data AS data,
    exists(operations, o -> o.role = 'epoch' AND o.kind = 'set') AND
    exists(operations, o -> o.role = 'controller' AND o.kind = 'create') AS is_election,
    s.session IS NULL AND exists(operations, o -> o.role = 'controller' AND o.kind = 'create'
      AND NOT o.ephemeral
      AND coalesce(CAST(get_json_object(o.data, '$.kraftControllerEpoch') AS INT), -1) >= 0)
      AS is_kraft
  FROM commits c JOIN runs r ON c.run = r.run AND c.zxid > r.first_zxid
  LEFT JOIN sessions s ON c.run = s.run AND c.session = s.session WHERE NOT c.failed),
held AS (
  SELECT h.run, h.czxid AS zxid, h.ephemeral_owner AS session, CAST(NULL AS BIGINT) AS time_ms,
    e.data, false AS is_kraft
  FROM dumps h JOIN dumps e ON h.run = e.run AND NOT h.is_final AND NOT e.is_final
    AND h.path = '/controller' AND e.path = '/controller_epoch'
  WHERE h.ephemeral_owner IS NOT NULL),
terms AS (
  SELECT run, zxid, session, time_ms, data, is_kraft FROM elections WHERE is_election
  UNION ALL SELECT run, zxid, session, time_ms, data, is_kraft FROM held)
SELECT run, zxid, session, time_ms, {EPOCH_OF.format("data")} AS epoch,
  lead(zxid, 1, {1 << 62}L) OVER (PARTITION BY run ORDER BY zxid) AS until, is_kraft
FROM terms
"""

TERMS: Final = Table(
    name="silver/terms",
    inputs=("silver/commits", "silver/dumps", "silver/sessions", "runs"),
    schema="run STRING, zxid BIGINT, session STRING, time_ms BIGINT, epoch BIGINT, until BIGINT, "
    "is_kraft BOOLEAN",
    build=query(_TERMS),
)
