"""One row for each of ZooKeeper's transactions, each znode of a dump and each outcome."""

from __future__ import annotations

from typing import Final

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from event_log.commits import TOKENS
from pipeline import schemas
from pipeline.bronze.lines import IS_BLANK, numbered
from pipeline.silver.reading import is_good, parsed_others
from pipeline.table import Frames, Table, query


def _good(frames: Frames, source: str, shape: str) -> DataFrame:
    lines = numbered(frames).filter((F.col("source") == source) & ~F.expr(IS_BLANK))
    return parsed_others(lines, shape).filter(is_good())


def _commits(frames: Frames) -> DataFrame:
    return _good(frames, "commits", "/commit")


def _dumps(frames: Frames) -> DataFrame:
    is_final = F.col("file").endswith("/final.jsonl")
    return _good(frames, "dump", "/dump").withColumn("is_final", is_final)


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

COMMITS: Final = Table(
    name="silver/commits",
    inputs=("bronze/lines", "bronze/blocks"),
    schema=f"run STRING, file STRING, line_number BIGINT, {schemas.ddl(schemas.COMMIT)}",
    build=_commits,
)
DUMPS: Final = Table(
    name="silver/dumps",
    inputs=("bronze/lines", "bronze/blocks"),
    schema="run STRING, file STRING, line_number BIGINT, is_final BOOLEAN, "
    f"{schemas.ddl(schemas.DUMP)}",
    build=_dumps,
)
OUTCOMES: Final = Table(
    name="silver/outcomes",
    inputs=("silver/commits", "runs"),
    schema="run STRING, zxid BIGINT, position BIGINT, session STRING, "
    f"{schemas.ddl(schemas.OUTCOME)}, wrote_topic BOOLEAN, wrote_config BOOLEAN, "
    "wrote_token BOOLEAN",
    build=query(_OUTCOMES),
)
