"""The elements of clients' operations, each with what ZooKeeper recorded.

Operations have no request id. So an effect belongs to an operation only if no other operation of
the same API named the element (`named_once`).
"""

from __future__ import annotations

from typing import Final

from pipeline.query import query
from pipeline.table import Table

_CLIENT_OUTCOMES: Final = """
WITH requested AS (
  SELECT run, op_id, api_key, outcome, explode(requested) AS element FROM operations),
named AS (
  SELECT run, api_key, element, count(*) = 1 AS once FROM requested GROUP BY run, api_key, element),
effects AS (
  SELECT o.run, r.received.api_key AS api_key, o.element, array_sort(collect_set(o.zxid)) AS done
  FROM outcomes o JOIN requests r ON o.run = r.run AND o.request_id = r.request_id
  WHERE o.error = 0 AND r.received IS NOT NULL GROUP BY o.run, r.received.api_key, o.element),
same AS (
  SELECT DISTINCT run, api_key, explode(unchanged) AS element FROM responses),
results AS (
  SELECT run, op_id, api_key, requested, outcome, e.element, e.error, invoked_row, completed_row
  FROM operations LATERAL VIEW explode(elements) x AS e
  UNION ALL
  SELECT run, op_id, api_key, requested, outcome, element, NULL, invoked_row, completed_row
  FROM operations LATERAL VIEW explode(requested) x AS element WHERE outcome = 'info')
SELECT t.run, t.op_id, t.api_key, t.outcome, t.element, t.error,
  coalesce(n.once, false) AS named_once, s.element IS NOT NULL AS unchanged,
  coalesce(e.done, array()) AS done, t.invoked_row, t.completed_row
FROM results t
LEFT JOIN named n ON t.run = n.run AND t.api_key = n.api_key AND t.element = n.element
LEFT JOIN effects e ON t.run = e.run AND t.api_key = e.api_key AND t.element = e.element
LEFT JOIN same s ON t.run = s.run AND t.api_key = s.api_key AND t.element = s.element
"""

CLIENT_OUTCOMES: Final = Table(
    name="gold/client_outcomes",
    inputs=("gold/operations", "silver/outcomes", "gold/requests", "gold/responses"),
    schema="run STRING, op_id STRING, api_key BIGINT, outcome STRING, element STRING, "
    "error BIGINT, named_once BOOLEAN, unchanged BOOLEAN, done ARRAY<BIGINT>, "
    "invoked_row STRING, completed_row STRING",
    build=query(_CLIENT_OUTCOMES),
)
