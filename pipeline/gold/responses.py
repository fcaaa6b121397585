"""Responses with the decisions that they report.

A response and a decision belong together when they have the same request and zxid. A decision is
what the controller claims; an outcome is what ZooKeeper recorded.
"""

from __future__ import annotations

from typing import Final

from judge.sql import row_of
from pipeline.query import query
from pipeline.schemas import ELEMENTS, IDENTITY
from pipeline.table import Table

_RESPONSES: Final = f"""
WITH relevant AS (
  SELECT run, request_id, zxid, kind, struct(file, line_number) AS place,
    struct(node, boot, seq) AS at, route, identity, api_key, elements, unchanged, error,
    image_zxid, validate_only
  FROM events WHERE kind = 'request_decided'
    OR (kind = 'responded' AND error IS NULL AND NOT closed)),
paired AS (
  SELECT run, request_id, zxid,
    min_by(struct(at, identity, api_key, elements, unchanged, error, image_zxid, validate_only),
      place) FILTER (WHERE kind = 'request_decided') AS d,
    collect_list(struct(place, at, route)) FILTER (WHERE kind = 'responded') AS responses
  FROM relevant GROUP BY run, request_id, zxid),
each AS (SELECT run, request_id, zxid, d, explode(responses) AS a FROM paired WHERE d IS NOT NULL)
SELECT run, request_id, d.identity, d.api_key, d.elements, d.unchanged, d.error, d.image_zxid,
  zxid, d.validate_only, a.route, {row_of("d.at")} AS decided_row,
  {row_of("a.at")} AS responded_row
FROM each
"""

RESPONSES: Final = Table(
    name="gold/responses",
    inputs=("silver/events",),
    schema=f"run STRING, request_id STRING, identity {IDENTITY}, api_key BIGINT, "
    f"elements {ELEMENTS}, unchanged ARRAY<STRING>, error BIGINT, image_zxid BIGINT, "
    "zxid BIGINT, validate_only BOOLEAN, route STRING, decided_row STRING, responded_row STRING",
    build=query(_RESPONSES),
)
