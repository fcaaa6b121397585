"""F2: the controller executes the client's bytes, and the broker gets the controller's bytes.

The query groups events by request. A request has few executions and responses, so one row can hold
them all.
"""

from __future__ import annotations

from typing import Final

from pipeline.sql import place_of, row_of

INPUTS: Final = ("silver/events",)
SQL: Final = f"""
WITH requests AS (
  SELECT run, request_id,
    max_by(struct(node, boot, seq, body_sha256), struct(file, line_number))
      FILTER (WHERE kind = 'request_received') AS r,
    collect_set(answer_sha256) FILTER (WHERE kind = 'request_decided') AS sent,
    array_sort(collect_list(struct(node, boot, seq)) FILTER (
      WHERE kind = 'request_decided' AND answer_sha256 IS NOT NULL)) AS decisions,
    collect_list(struct(kind, node, boot, seq, body_sha256, answer_sha256)) FILTER (
      WHERE kind = 'execution_started' AND body_sha256 IS NOT NULL
      OR kind = 'forward_answered' AND answer_sha256 IS NOT NULL) AS handled
  FROM events
  WHERE kind IN ('request_received', 'execution_started', 'forward_answered', 'request_decided')
  GROUP BY run, request_id),
each AS (
  SELECT run, request_id, r, sent, decisions, e.*, e.kind = 'execution_started' AS is_execution
  FROM requests LATERAL VIEW explode(handled) x AS e),
judged AS (
  SELECT *, CASE WHEN is_execution THEN body_sha256 <> r.body_sha256
    ELSE NOT array_contains(sent, answer_sha256) END AS is_broken
  FROM each
  WHERE CASE WHEN is_execution THEN r.body_sha256 IS NOT NULL ELSE size(decisions) > 0 END)
SELECT run, CASE WHEN is_broken THEN {place_of("judged")} END AS key,
  CASE WHEN is_execution THEN array({row_of("r")}, {row_of("judged")})
    ELSE array_append(transform(decisions, d -> {row_of("d")}), {row_of("judged")}) END AS rows,
  CASE WHEN is_execution THEN concat(request_id, ': controller ', node,
      ' executed bytes that differ from those that broker ', r.node, ' received')
    ELSE concat(request_id, ': broker ', node, ' got bytes that no controller sent') END AS sentence
FROM judged
"""
