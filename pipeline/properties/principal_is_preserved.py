"""F1: the controller decides for the principal, host and listener that the broker saw."""

from __future__ import annotations

from typing import Final

from pipeline.sql import place_of, row_of

FIELDS: Final = (
    *("principal", "token_authenticated", "client_host", "listener", "security_protocol"),
    *("client_id", "api_key", "api_version"),
)
_CHANGED: Final = ", ".join(
    f"CASE WHEN NOT (x.{name} <=> r.{name}) THEN struct('{name}' AS name, "
    f"coalesce(CAST(r.{name} AS STRING), 'null') AS seen, "
    f"coalesce(CAST(x.{name} AS STRING), 'null') AS decided_for) END"
    for name in FIELDS
)

INPUTS: Final = ("silver/events",)
SQL: Final = f"""
WITH received AS (
  SELECT run, request_id, max_by(struct(node, boot, seq, {", ".join(FIELDS)}),
    struct(file, line_number)) AS r
  FROM events WHERE kind = 'request_received' GROUP BY run, request_id),
judged AS (
  SELECT x.run, x.request_id, x.node, x.boot, x.seq, r.node AS broker, {row_of("r")} AS read_at,
    get(array_compact(array({_CHANGED})), 0) AS changed
  FROM events x JOIN received ON x.run = received.run AND x.request_id = received.request_id
  WHERE x.kind = 'execution_started')
SELECT run, CASE WHEN changed IS NOT NULL THEN {place_of("judged")} END AS key,
  array(read_at, {row_of("judged")}) AS rows,
  concat(request_id, ': ', changed.name, ' was ', changed.seen, ' at broker ', broker, ', but ',
    changed.decided_for, ' at controller ', node) AS sentence
FROM judged
"""
