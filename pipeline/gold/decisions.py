"""The elements that brokers responded to, each with the decision and what was committed."""

from __future__ import annotations

from typing import Final

from pipeline.query import query
from pipeline.schemas import IDENTITY
from pipeline.table import Table

_DECISIONS: Final = """
WITH each AS (
  SELECT *, explode(elements) AS e FROM responses)
SELECT a.run, a.request_id, a.identity, a.api_key, e.element, e.error,
  array_contains(a.unchanged, e.element) AS unchanged, a.validate_only, a.image_zxid, a.zxid,
  a.route, a.decided_row, a.responded_row, coalesce(c.zxids, array()) AS committed,
  coalesce(c.done, array()) AS done, coalesce(c.wrote_topic, false) AS wrote_topic,
  coalesce(c.wrote_config, false) AS wrote_config
FROM each a LEFT JOIN committed c ON a.run = c.run AND a.identity.broker_id = c.broker_id
  AND a.identity.incarnation = c.incarnation AND a.identity.sequence = c.sequence
  AND e.element = c.element
"""

DECISIONS: Final = Table(
    name="gold/decisions",
    inputs=("gold/responses", "gold/committed"),
    schema=f"run STRING, request_id STRING, identity {IDENTITY}, api_key BIGINT, "
    "element STRING, error BIGINT, unchanged BOOLEAN, validate_only BOOLEAN, "
    "image_zxid BIGINT, zxid BIGINT, route STRING, decided_row STRING, responded_row STRING, "
    "committed ARRAY<BIGINT>, done ARRAY<BIGINT>, wrote_topic BOOLEAN, wrote_config BOOLEAN",
    build=query(_DECISIONS),
)
