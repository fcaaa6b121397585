"""The lives of each topic, from the creation of its znode to the deletion, if there is one."""

from __future__ import annotations

from typing import Final

from pipeline.query import query
from pipeline.schemas import IDENTITY
from pipeline.table import Table

_TOPIC_LIVES: Final = f"""
WITH applied AS (
  SELECT c.* FROM commits c JOIN runs r ON c.run = r.run AND c.zxid > r.first_zxid
  WHERE NOT c.failed AND exists(c.operations, o -> o.kind IN ('create', 'delete')
    AND o.path LIKE '/brokers/topics/%')),
each AS (SELECT run, zxid, outcomes, posexplode(operations) AS (position, o) FROM applied),
of_topics AS (
  SELECT run, substring(o.path, 17) AS topic, o.kind, zxid, position,
    get(filter(outcomes, x -> x.element = substring(o.path, 17) AND x.error = 0), 0) AS creator
  FROM each WHERE o.kind IN ('create', 'delete') AND o.path LIKE '/brokers/topics/%'
    AND instr(substring(o.path, 17), '/') = 0
  UNION ALL
  SELECT run, substring(path, 17), 'create', czxid, -1, NULL
  FROM dumps WHERE NOT is_final AND path LIKE '/brokers/topics/%'
    AND instr(substring(path, 17), '/') = 0),
followed AS (
  SELECT *, lead(struct(kind, zxid)) OVER (PARTITION BY run, topic ORDER BY zxid, position) AS next
  FROM of_topics),
lives AS (
  SELECT run, topic, zxid AS born, CASE WHEN next.kind = 'delete' THEN next.zxid ELSE {1 << 62}L
    END AS died, CASE WHEN creator IS NULL THEN NULL ELSE
    named_struct('broker_id', creator.broker_id, 'incarnation', creator.incarnation,
      'sequence', creator.sequence) END AS creator
  FROM followed WHERE kind = 'create')
SELECT run, topic, array_sort(collect_list(struct(born, died, creator))) AS lives
FROM lives GROUP BY run, topic
"""

TOPIC_LIVES: Final = Table(
    name="gold/topic_lives",
    inputs=("silver/commits", "silver/dumps", "runs"),
    schema="run STRING, topic STRING, lives ARRAY<STRUCT<born: BIGINT, died: BIGINT, "
    f"creator: {IDENTITY}>>",
    build=query(_TOPIC_LIVES),
)
