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


INPUTS: Final = (
    *("silver/execution_started", "silver/forward_replied", "silver/request_decided"),
    "gold/requests",
)
SQL: Final = f"""
WITH executed AS (
  SELECT x.run, x.request_id, x.node, x.boot, x.seq, q.received AS r,
    x.body_sha256 <> q.received.body_sha256 AS is_broken
  FROM execution_started x JOIN requests q ON x.run = q.run AND x.request_id = q.request_id
  WHERE x.body_sha256 IS NOT NULL AND q.received.body_sha256 IS NOT NULL),
decided AS (
  SELECT run, request_id,
    array_sort(collect_list(struct(node, boot, seq, response_sha256))) AS decisions
  FROM request_decided WHERE response_sha256 IS NOT NULL GROUP BY run, request_id),
replied AS (
  SELECT f.run, f.request_id, f.node, f.boot, f.seq, d.decisions,
    NOT exists(d.decisions, x -> x.response_sha256 = f.response_sha256) AS is_broken
  FROM forward_replied f JOIN decided d ON f.run = d.run AND f.request_id = d.request_id
  WHERE f.response_sha256 IS NOT NULL)
SELECT run, CASE WHEN is_broken THEN {sql.place_of("executed")} END AS key,
  array({sql.row_of("r")}, {sql.row_of("executed")}) AS rows,
  concat(request_id, ': controller ', node, ' executed bytes that differ from those that broker ',
    r.node, ' received') AS sentence
FROM executed
UNION ALL
SELECT run, CASE WHEN is_broken THEN {sql.place_of("replied")} END,
  array_append(transform(decisions, d -> {sql.row_of("d")}), {sql.row_of("replied")}),
  concat(request_id, ': broker ', node, ' got bytes that no controller sent')
FROM replied
"""
