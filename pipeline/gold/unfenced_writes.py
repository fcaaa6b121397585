"""The number of metadata writes with and without a check of the controller epoch, by path."""

from __future__ import annotations

from typing import Final

from pipeline.query import query
from pipeline.table import Table

UNFENCED_WRITES: Final = Table(
    name="gold/unfenced_writes",
    inputs=("gold/admin_writes",),
    schema="run STRING, below STRING, fenced BIGINT, unfenced BIGINT, sessions BIGINT, "
    "first_unfenced_zxid BIGINT",
    build=query("""
SELECT run, below, count_if(fenced) AS fenced, count_if(NOT fenced) AS unfenced,
  count(DISTINCT session) AS sessions, min(CASE WHEN NOT fenced THEN zxid END)
    AS first_unfenced_zxid
FROM (SELECT *, regexp_extract(path, '^(/[^/]+(?:/[^/]+)?)', 1) AS below FROM admin_writes)
GROUP BY run, below
"""),
)
