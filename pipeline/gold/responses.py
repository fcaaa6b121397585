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
WITH decided AS (
  SELECT run, request_id, zxid, min(struct(file, line_number, node, boot, seq, identity, api_key,
    elements, unchanged, error, image_zxid, validate_only)) AS d
  FROM request_decided GROUP BY run, request_id, zxid)
SELECT d.run, d.request_id, d.d.identity, d.d.api_key, d.d.elements, d.d.unchanged, d.d.error,
  d.d.image_zxid, d.zxid, d.d.validate_only, a.route, {row_of("d.d")} AS decided_row,
  {row_of("a")} AS responded_row
FROM decided d JOIN responded a
  ON d.run = a.run AND d.request_id = a.request_id AND d.zxid = a.zxid
WHERE a.error IS NULL AND NOT a.closed
"""

RESPONSES: Final = Table(
    name="gold/responses",
    inputs=("silver/request_decided", "silver/responded"),
    schema=f"run STRING, request_id STRING, identity {IDENTITY}, api_key BIGINT, "
    f"elements {ELEMENTS}, unchanged ARRAY<STRING>, error BIGINT, image_zxid BIGINT, "
    "zxid BIGINT, validate_only BOOLEAN, route STRING, decided_row STRING, responded_row STRING",
    build=query(_RESPONSES),
)
