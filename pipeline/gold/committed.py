"""The elements of requests that have an outcome, with the effects of their transactions."""

from __future__ import annotations

from typing import Final

from pipeline.query import query
from pipeline.table import Table

_COMMITTED: Final = """
SELECT run, broker_id, incarnation, sequence, element,
  array_sort(collect_set(zxid)) AS zxids,
  array_sort(coalesce(collect_set(zxid) FILTER (WHERE error = 0), array())) AS done,
  min_by(request_id, struct(zxid, position)) AS request_id,
  coalesce(bool_or(wrote_topic) FILTER (WHERE error = 0), false) AS wrote_topic,
  coalesce(bool_or(wrote_config) FILTER (WHERE error = 0), false) AS wrote_config,
  bool_or(wrote_token) AS wrote_token
FROM outcomes GROUP BY run, broker_id, incarnation, sequence, element
"""

COMMITTED: Final = Table(
    name="gold/committed",
    inputs=("silver/outcomes",),
    schema="run STRING, broker_id BIGINT, incarnation STRING, sequence BIGINT, element STRING, "
    "zxids ARRAY<BIGINT>, done ARRAY<BIGINT>, request_id STRING, wrote_topic BOOLEAN, "
    "wrote_config BOOLEAN, wrote_token BOOLEAN",
    build=query(_COMMITTED),
)
