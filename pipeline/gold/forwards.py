"""Attempts to forward a request."""

from __future__ import annotations

from typing import Final

from pipeline.gold.requests import PLACES
from pipeline.query import query
from pipeline.table import Table

_FORWARDS: Final = """
WITH relevant AS (
  SELECT run, request_id, attempt, kind, node, boot, seq, mono_ns, wall_ms, controller_id, local,
    error, zxid, struct(file, line_number, node, boot, seq) AS at
  FROM events WHERE kind IN ('forward_sent', 'forward_replied'))
SELECT run, request_id, attempt,
  min_by(node, at) AS node,
  min_by(controller_id, at) FILTER (WHERE kind = 'forward_sent') AS controller_id,
  min_by(local, at) FILTER (WHERE kind = 'forward_sent') AS local,
  min(wall_ms) FILTER (WHERE kind = 'forward_sent') AS sent_ms,
  max_by(error, at) FILTER (WHERE kind = 'forward_replied') AS error,
  max_by(zxid, at) FILTER (WHERE kind = 'forward_replied') AS zxid,
  max(mono_ns) FILTER (WHERE kind = 'forward_replied')
    - min(mono_ns) FILTER (WHERE kind = 'forward_sent') AS took_ns,
  count_if(kind = 'forward_sent') AS times_sent,
  count_if(kind = 'forward_replied') AS times_returned,
  slice(array_sort(collect_list(at) FILTER (WHERE kind = 'forward_sent')), 1, 4) AS sent,
  slice(array_sort(collect_list(at) FILTER (WHERE kind = 'forward_replied')), 1, 4) AS returned
FROM relevant GROUP BY run, request_id, attempt
"""

FORWARDS: Final = Table(
    name="gold/forwards",
    inputs=("silver/events",),
    schema="run STRING, request_id STRING, attempt BIGINT, node STRING, controller_id BIGINT, "
    "local BOOLEAN, sent_ms BIGINT, error BIGINT, zxid BIGINT, took_ns BIGINT, "
    f"times_sent BIGINT, times_returned BIGINT, sent {PLACES}, returned {PLACES}",
    build=query(_FORWARDS),
)
