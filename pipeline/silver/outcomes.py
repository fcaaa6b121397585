"""The outcomes of elements, as they are in transactions."""

from __future__ import annotations

from typing import Final

from event_log.commits import TOKENS
from pipeline import schemas
from pipeline.query import query
from pipeline.table import Table

# An outcome and its effect are in one transaction, so the effect is found without a join.
_OUTCOMES: Final = f"""
WITH applied AS (
  SELECT c.*, transform(filter(c.operations, o -> o.kind IN ('create', 'set', 'delete')),
    o -> o.path) AS paths
  FROM commits c JOIN runs r ON c.run = r.run AND c.zxid > r.first_zxid
  WHERE NOT c.failed AND size(c.outcomes) > 0),
each AS (
  SELECT run, zxid, session, paths, posexplode(outcomes) AS (position, o) FROM applied),
named AS (
  SELECT *, substring_index(o.element, ':', 1) AS resource_type,
    CASE WHEN instr(o.element, ':') > 0
         THEN substring(o.element, instr(o.element, ':') + 1) ELSE '' END AS resource
  FROM each)
SELECT run, zxid, CAST(position AS BIGINT) AS position, session, o.broker_id, o.incarnation,
  o.sequence, o.request_id, o.element, o.error,
  array_contains(paths, concat('/brokers/topics/', o.element)) AS wrote_topic,
  CASE resource_type
    WHEN '2' THEN array_contains(paths, concat('/config/topics/', resource))
    WHEN '4' THEN array_contains(paths, concat('/config/brokers/',
      CASE WHEN resource = '' THEN '<default>' ELSE CAST(try_cast(resource AS INT) AS STRING) END))
    ELSE true END AS wrote_config,
  array_contains(paths, concat('{TOKENS}', o.element)) AS wrote_token
FROM named
"""

OUTCOMES: Final = Table(
    name="silver/outcomes",
    inputs=("silver/commits", "runs"),
    schema="run STRING, zxid BIGINT, position BIGINT, session STRING, "
    f"{schemas.ddl(schemas.OUTCOME)}, wrote_topic BOOLEAN, wrote_config BOOLEAN, "
    "wrote_token BOOLEAN",
    build=query(_OUTCOMES),
)
