"""The operations of clients, from the histories that workloads record."""

from __future__ import annotations

from typing import Final

from judge.sql import row_of
from pipeline.query import query
from pipeline.schemas import ELEMENTS
from pipeline.table import Table

_OPERATIONS: Final = f"""
WITH completed AS (
  SELECT run, op_id, min_by(struct(outcome, elements, mono_ns, {row_of("client_completed")} AS row),
    struct(file, line_number)) AS first
  FROM client_completed WHERE source = 'client' GROUP BY run, op_id)
SELECT i.run, i.op_id, i.api_key, i.elements AS requested,
  coalesce(t.first.outcome, 'info') AS outcome, coalesce(t.first.elements, array()) AS elements,
  {row_of("i")} AS invoked_row, t.first.row AS completed_row, i.mono_ns AS invoked_ns,
  t.first.mono_ns AS completed_ns
FROM client_invoked i LEFT JOIN completed t ON i.run = t.run AND i.op_id = t.op_id
WHERE i.source = 'client'
"""

OPERATIONS: Final = Table(
    name="gold/operations",
    inputs=("silver/client_invoked", "silver/client_completed"),
    schema=f"run STRING, op_id STRING, api_key BIGINT, requested ARRAY<STRING>, outcome STRING, "
    f"elements {ELEMENTS}, invoked_row STRING, completed_row STRING, invoked_ns BIGINT, "
    "completed_ns BIGINT",
    build=query(_OPERATIONS),
)
