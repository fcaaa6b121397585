"""Errors that clients and brokers got, by principal, API and error code."""

from __future__ import annotations

from typing import Final

from pipeline.query import query
from pipeline.table import Table

# TOPIC_AUTHORIZATION_FAILED and the other error codes for a missing right.
AUTHORIZATION_CODES: Final = "29, 30, 31, 53, 65"
_REJECTIONS: Final = f"""
WITH responses AS (
  SELECT d.run, r.received.principal AS principal, d.api_key, d.error, d.request_id
  FROM decisions d JOIN requests r ON d.run = r.run AND d.request_id = r.request_id
  WHERE d.error <> 0 AND r.received IS NOT NULL
  UNION ALL
  SELECT run, received.principal, received.api_key, responded.error, request_id
  FROM requests WHERE received IS NOT NULL AND coalesce(responded.error, 0) <> 0
  UNION ALL
  SELECT run, coalesce(received.principal, 'unknown'), coalesce(received.api_key, -1),
    rejected_error, request_id
  FROM requests WHERE envelopes_rejected > 0)
SELECT run, principal, api_key, error, error IN ({AUTHORIZATION_CODES}) AS is_denial,
  count(*) AS rejections, count(DISTINCT request_id) AS requests
FROM responses GROUP BY run, principal, api_key, error
"""

REJECTIONS: Final = Table(
    name="gold/rejections",
    inputs=("gold/decisions", "gold/requests"),
    schema="run STRING, principal STRING, api_key BIGINT, error BIGINT, is_denial BOOLEAN, "
    "rejections BIGINT, requests BIGINT",
    build=query(_REJECTIONS),
)
