"""F2: what the controller decides is what the client wrote, and what is relayed is its answer.

Compared are digests; messages that hold secrets have none (event_log/digests.py). An execution
whose `request_received` is not there, and an answer without a `request_decided`, are not judged.
One aggregation by request, as its few executions and answers fit a row.
"""

from __future__ import annotations

from typing import Final

from pipeline.property import Property, place_of, row_of

PROPERTY: Final = Property(
    id="F2",
    inputs=("silver/events",),
    sql=f"""
WITH requests AS (
  SELECT run, request_id,
    max_by(struct(node, boot, seq, body_sha256), struct(file, line_number))
      FILTER (WHERE kind = 'request_received') AS r,
    collect_set(answer_sha256) FILTER (WHERE kind = 'request_decided') AS given,
    array_sort(collect_list(struct(node, boot, seq)) FILTER (
      WHERE kind = 'request_decided' AND answer_sha256 IS NOT NULL)) AS decisions,
    collect_list(struct(kind, node, boot, seq, body_sha256, answer_sha256)) FILTER (
      WHERE kind = 'execution_started' AND body_sha256 IS NOT NULL
      OR kind = 'forward_answered' AND answer_sha256 IS NOT NULL) AS told
  FROM events
  WHERE kind IN ('request_received', 'execution_started', 'forward_answered', 'request_decided')
  GROUP BY run, request_id),
each AS (
  SELECT run, request_id, r, given, decisions, e.*, e.kind = 'execution_started' AS is_execution
  FROM requests LATERAL VIEW explode(told) x AS e),
judged AS (
  SELECT *, CASE WHEN is_execution THEN body_sha256 <> r.body_sha256
    ELSE NOT array_contains(given, answer_sha256) END AS is_broken
  FROM each
  WHERE CASE WHEN is_execution THEN r.body_sha256 IS NOT NULL ELSE size(decisions) > 0 END)
SELECT run, CASE WHEN is_broken THEN {place_of("judged")} END AS key,
  CASE WHEN is_execution THEN array({row_of("r")}, {row_of("judged")})
    ELSE array_append(transform(decisions, d -> {row_of("d")}), {row_of("judged")}) END AS rows,
  CASE WHEN is_execution THEN concat(request_id, ': the bytes that broker ', r.node,
      ' read are not those that controller ', node, ' decided')
    ELSE concat(request_id, ': the answer that broker ', node,
      ' got is none that a controller gave') END AS sentence
FROM judged
""",
)
