"""The controller decides for the principal, host and listener that the broker saw.

An execution without a `request_received` is not judged: the client's broker was killed before it
wrote that event, so the client got no response.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Final

from judge import sql
from judge.history import History, place_of, row_of
from judge.property import PropertySpec, Violation

SPEC: Final = PropertySpec(
    id="F1",
    name="principal_is_preserved",
    statement="the controller decides for the principal, host and listener that the broker saw",
    witnesses=("events",),
    row="executions of requests that have a request_received event",
    key="<node>/<boot>/<seq> of the execution",
)

FIELDS: Final = (
    *("principal", "token_authenticated", "client_host", "listener", "security_protocol"),
    *("client_id", "api_key", "api_version"),
)


def check(history: History) -> Iterator[Violation | None]:
    """Judge every execution."""
    for event in history.of_kind["execution_started"]:
        received = history.received.get(event["request_id"])
        if received is None:
            continue
        name = next((name for name in FIELDS if event[name] != received[name]), None)
        if name is None:
            yield None
            continue
        seen, decided = (_shown(source[name]) for source in (received, event))
        sentence = (
            f"{event['request_id']}: {name} was {seen} at broker {received['node']}, but "
            f"{decided} at controller {event['node']}"
        )
        yield SPEC.violation(place_of(event), [row_of(received), row_of(event)], sentence)


def _shown(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value)


_CHANGED: Final = ", ".join(
    f"CASE WHEN NOT (x.{name} <=> q.received.{name}) THEN struct('{name}' AS name, "
    f"coalesce(CAST(q.received.{name} AS STRING), 'null') AS seen, "
    f"coalesce(CAST(x.{name} AS STRING), 'null') AS decided_for) END"
    for name in FIELDS
)

INPUTS: Final = ("silver/execution_started", "gold/requests")
SQL: Final = f"""
WITH judged AS (
  SELECT x.run, x.request_id, x.node, x.boot, x.seq, q.received.node AS broker,
    {sql.row_of("q.received")} AS read_at,
    get(array_compact(array({_CHANGED})), 0) AS changed
  FROM execution_started x JOIN requests q
    ON x.run = q.run AND x.request_id = q.request_id AND q.received IS NOT NULL)
SELECT run, CASE WHEN changed IS NOT NULL THEN {sql.place_of("judged")} END AS key,
  array(read_at, {sql.row_of("judged")}) AS rows,
  concat(request_id, ': ', changed.name, ' was ', changed.seen, ' at broker ', broker, ', but ',
    changed.decided_for, ' at controller ', node) AS sentence
FROM judged
"""
