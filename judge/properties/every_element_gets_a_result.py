"""D7: a response has exactly one result for each element of its request.

One bad element does not stop the others (KIP-4), and no element is left out or answered twice.
"""

from __future__ import annotations

from collections.abc import Iterator

from event_log.properties import Violation
from judge.history import History, row_of
from judge.properties.violations import violation


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
        yield violation("D7", operation.op_id, rows, sentence)
