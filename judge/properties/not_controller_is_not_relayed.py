"""No client gets NOT_CONTROLLER for a forwarded request (KAFKA-12677).

For a request with the route NOT_CONTROLLER the error is correct: forwarding is switched off, or
only the controller's broker handles this API (or, on a drafted listener, this version of it).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from judge import sql
from judge.history import History, row_of
from judge.property import PropertySpec, Violation

SPEC: Final = PropertySpec(
    id="F5",
    name="not_controller_is_not_relayed",
    statement="no client gets NOT_CONTROLLER for a forwarded request",
    witnesses=("events",),
    row="responses to requests with the route FORWARD",
    key="<request id>",
)

NOT_CONTROLLER: Final = 41


def check(history: History) -> Iterator[Violation | None]:
    """Judge every response to a request that was to be forwarded."""
    relayed = {
        response.request_id: response
        for response in history.responses
        if response.error == NOT_CONTROLLER
        or any(code == NOT_CONTROLLER for _, code in response.elements)
    }
    for event in history.of_kind["responded"]:
        if event["route"] != "FORWARD" or event["closed"]:
            continue
        response = relayed.get(event["request_id"])
        if event["error"] != NOT_CONTROLLER and response is None:
            yield None
            continue
        rows = [row_of(event)] + ([row_of(response.decided)] if response else [])
        sentence = f"{event['request_id']}: the client got NOT_CONTROLLER"
        yield SPEC.violation(event["request_id"], rows, sentence)


INPUTS: Final = ("silver/responded", "gold/responses")
SQL: Final = f"""
WITH relayed AS (
  SELECT run, request_id, max(decided_row) AS decided_row FROM responses
  WHERE error = 41 OR exists(elements, e -> e.error = 41) GROUP BY run, request_id),
judged AS (
  SELECT a.run, a.request_id, {sql.row_of("a")} AS responded_row, r.decided_row,
    coalesce(a.error = 41, false) OR r.request_id IS NOT NULL AS relayed
  FROM responded a LEFT JOIN relayed r ON a.run = r.run AND a.request_id = r.request_id
  WHERE a.route = 'FORWARD' AND NOT a.closed)
SELECT run, CASE WHEN relayed THEN request_id END AS key,
  array_compact(array(responded_row, decided_row)) AS rows,
  concat(request_id, ': the client got NOT_CONTROLLER') AS sentence
FROM judged
"""
