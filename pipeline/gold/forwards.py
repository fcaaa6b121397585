"""Attempts to forward a request."""

from __future__ import annotations

from typing import Final

from pipeline.gold.requests import PLACES
from pipeline.query import query
from pipeline.table import Table

_FORWARDS: Final = """
WITH parts AS (
  SELECT run, request_id, attempt, mono_ns AS sent_ns, NULL AS returned_ns, wall_ms AS sent_ms,
    struct(file, line_number, node, boot, seq) AS sent, NULL AS returned,
    struct(file, line_number, node, controller_id, local) AS sending, NULL AS reply
  FROM forward_sent
  UNION ALL
  SELECT run, request_id, attempt, NULL, mono_ns, NULL, NULL,
    struct(file, line_number, node, boot, seq), NULL, struct(file, line_number, node, error, zxid)
  FROM forward_replied)
SELECT run, request_id, attempt, coalesce(min(sending).node, min(reply).node) AS node,
  min(sending).controller_id AS controller_id, min(sending).local AS local,
  min(sent_ms) AS sent_ms, max(reply).error AS error, max(reply).zxid AS zxid,
  max(returned_ns) - min(sent_ns) AS took_ns,
  count(sent) AS times_sent, count(returned) AS times_returned,
  array_distinct(array_compact(array(min(sent), max(sent)))) AS sent,
  array_distinct(array_compact(array(min(returned), max(returned)))) AS returned
FROM (SELECT /*+ REPARTITION(run, request_id, attempt) */ * FROM parts)
GROUP BY run, request_id, attempt
"""

FORWARDS: Final = Table(
    name="gold/forwards",
    inputs=("silver/forward_sent", "silver/forward_replied"),
    schema="run STRING, request_id STRING, attempt BIGINT, node STRING, controller_id BIGINT, "
    "local BOOLEAN, sent_ms BIGINT, error BIGINT, zxid BIGINT, took_ns BIGINT, "
    f"times_sent BIGINT, times_returned BIGINT, sent {PLACES}, returned {PLACES}",
    build=query(_FORWARDS),
)
