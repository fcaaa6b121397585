"""The controller executes the client's bytes, and the broker gets the controller's bytes.

Digests are compared; messages with secrets have none (event_log/digests.py). An execution without a
`request_received` and a response without a `request_decided` are not judged.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from typing import Final

from judge import sql
from judge.history import Event, History, place_of, row_of
from judge.property import PropertySpec, Violation

SPEC: Final = PropertySpec(
    id="F2",
    name="bytes_are_preserved",
    statement="the controller executes the bytes that the client sent, and the broker gets the "
    "response bytes that the controller sent",
    witnesses=("events",),
    row="executions, and responses to Envelopes, for which both the broker and the controller "
    "recorded a digest",
    key="<node>/<boot>/<seq> of the execution or of the forward_replied event",
    gap_blocks_fail=True,  # the gap may hide the decision that made the response
)


def check(history: History) -> Iterator[Violation | None]:
    """Judge every execution, and every response that a broker got."""
    yield from _requests(history)
    yield from _responses(history)


def _requests(history: History) -> Iterator[Violation | None]:
    for event in history.of_kind["execution_started"]:
        received = history.received.get(event["request_id"])
        if received is None or None in (received["body_sha256"], event["body_sha256"]):
            continue
        if event["body_sha256"] == received["body_sha256"]:
            yield None
            continue
        sentence = (
            f"{event['request_id']}: controller {event['node']} executed bytes that differ from "
            f"those that broker {received['node']} received"
        )
        yield SPEC.violation(place_of(event), [row_of(received), row_of(event)], sentence)


def _responses(history: History) -> Iterator[Violation | None]:
    sent: dict[str, list[Event]] = defaultdict(list)
    for event in history.of_kind["request_decided"]:
        if event["response_sha256"] is not None:
            sent[event["request_id"]].append(event)
    for event in history.of_kind["forward_replied"]:
        decisions = sent.get(event["request_id"])
        if decisions is None or event["response_sha256"] is None:
            continue
        if event["response_sha256"] in {decision["response_sha256"] for decision in decisions}:
            yield None
            continue
        sentence = (
            f"{event['request_id']}: broker {event['node']} got bytes that no controller sent"
        )
        rows = [*map(row_of, decisions), row_of(event)]
        yield SPEC.violation(place_of(event), rows, sentence)


# The query groups events by request. A request has few executions and responses, so one row can
# hold them all.
INPUTS: Final = ("silver/events",)
SQL: Final = f"""
WITH requests AS (
  SELECT run, request_id,
    max_by(struct(node, boot, seq, body_sha256), struct(file, line_number))
      FILTER (WHERE kind = 'request_received') AS r,
    collect_set(response_sha256) FILTER (WHERE kind = 'request_decided') AS sent,
    array_sort(collect_list(struct(node, boot, seq)) FILTER (
      WHERE kind = 'request_decided' AND response_sha256 IS NOT NULL)) AS decisions,
    collect_list(struct(kind, node, boot, seq, body_sha256, response_sha256)) FILTER (
      WHERE kind = 'execution_started' AND body_sha256 IS NOT NULL
      OR kind = 'forward_replied' AND response_sha256 IS NOT NULL) AS handled
  FROM events
  WHERE kind IN ('request_received', 'execution_started', 'forward_replied', 'request_decided')
  GROUP BY run, request_id),
each AS (
  SELECT run, request_id, r, sent, decisions, e.*, e.kind = 'execution_started' AS is_execution
  FROM requests LATERAL VIEW explode(handled) x AS e),
judged AS (
  SELECT *, CASE WHEN is_execution THEN body_sha256 <> r.body_sha256
    ELSE NOT array_contains(sent, response_sha256) END AS is_broken
  FROM each
  WHERE CASE WHEN is_execution THEN r.body_sha256 IS NOT NULL ELSE size(decisions) > 0 END)
SELECT run, CASE WHEN is_broken THEN {sql.place_of("judged")} END AS key,
  CASE WHEN is_execution THEN array({sql.row_of("r")}, {sql.row_of("judged")})
    ELSE array_append(transform(decisions, d -> {sql.row_of("d")}), {sql.row_of("judged")})
    END AS rows,
  CASE WHEN is_execution THEN concat(request_id, ': controller ', node,
      ' executed bytes that differ from those that broker ', r.node, ' received')
    ELSE concat(request_id, ': broker ', node, ' got bytes that no controller sent') END AS sentence
FROM judged
"""
