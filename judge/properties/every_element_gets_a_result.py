"""A response has exactly one result for each element of its request.

One bad element does not stop the others (KIP-4), and no element is left out or answered twice.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from judge.history import History, row_of
from judge.property import PropertySpec, Violation

SPEC: Final = PropertySpec(
    id="D7",
    name="every_element_gets_a_result",
    statement="a response has exactly one result for each element of its request",
    witnesses=("clients",),
    row="clients' operations with a definite result",
    key="<op id>",
    gap_blocks_fail=True,
)


def check(history: History) -> Iterator[Violation | None]:
    """Compare the elements of each operation of a client with its results."""
    for operation in history.operations:
        if operation.outcome == "info" or operation.completed is None:
            continue
        requested, results = operation.requested, [name for name, _ in operation.elements]
        if sorted(requested) == sorted(results):
            yield None
            continue
        missing = len(set(requested) - set(results))
        sentence = (
            f"{operation.op_id}: the client requested {len(requested)} elements and got "
            f"{len(results)} results; {missing} elements have none"
        )
        rows = [row_of(operation.invoked), row_of(operation.completed)]
        yield SPEC.violation(operation.op_id, rows, sentence)


INPUTS: Final = ("gold/operations",)
SQL: Final = """
WITH responded AS (
  SELECT run, op_id, requested, transform(elements, e -> e.element) AS results,
    invoked_row, completed_row
  FROM operations WHERE outcome <> 'info')
SELECT run, CASE WHEN array_sort(requested) <> array_sort(results) THEN op_id END AS key,
  array(invoked_row, completed_row) AS rows,
  concat(op_id, ': the client requested ', size(requested), ' elements and got ', size(results),
    ' results; ', size(array_except(requested, results)), ' elements have none') AS sentence
FROM responded
"""
