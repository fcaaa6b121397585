"""D7: a response has exactly one result for each element of its request.

One bad element does not stop the others (KIP-4), and no element is left out or answered twice.
"""

from __future__ import annotations

from typing import Final

INPUTS: Final = ("gold/operations",)
SQL: Final = """
WITH answered AS (
  SELECT run, op_id, requested, transform(elements, e -> e.element) AS results,
    invoked_row, completed_row
  FROM operations WHERE outcome <> 'info')
SELECT run, CASE WHEN array_sort(requested) <> array_sort(results) THEN op_id END AS key,
  array(invoked_row, completed_row) AS rows,
  concat(op_id, ': the client requested ', size(requested), ' elements and got ', size(results),
    ' results; ', size(array_except(requested, results)), ' elements have none') AS sentence
FROM answered
"""
