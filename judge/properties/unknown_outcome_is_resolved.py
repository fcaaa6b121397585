"""A write without a definite response took effect once or not at all.

A request is open if its broker never answered it, closed its connection, or answered with an error
code after which the outcome is unknown. A client's operation is open if its outcome is `info` or
missing.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from typing import Final

from judge import sql
from judge.error_codes import INFO_CODES
from judge.history import Event, History, row_of
from judge.property import PropertySpec, Violation, zxid_row

SPEC: Final = PropertySpec(
    id="D4",
    name="unknown_outcome_is_resolved",
    statement="a write without a definite response took effect once or not at all",
    witnesses=("commits", "events", "clients"),
    row="forwarded requests, and clients' operations, without a definite response",
    key="<request id> or <op id>",
)


def check(history: History) -> Iterator[Violation | None]:
    """Judge every open request, and every open operation of a client."""
    commits: dict[str, dict[str, set[int]]] = defaultdict(lambda: defaultdict(set))
    for commit, outcome in history.outcomes:
        commits[outcome.request_id][outcome.element].add(commit.zxid)
    for request_id in _open_requests(history):
        zxids = commits.get(request_id, {})
        yield _violation(request_id, history.received[request_id], zxids)
    for operation in history.operations:
        if operation.outcome == "info":
            zxids = {
                element: {commit.zxid for commit, _ in history.effects.get(name, [])}
                for element in operation.requested
                if (name := (operation.api_key, element)) in history.unique_names
            }
            yield _violation(operation.op_id, operation.invoked, zxids)


def _open_requests(history: History) -> Iterator[str]:
    responded = {e["request_id"]: e for e in history.of_kind["responded"]}
    undecided = {
        response.request_id
        for response in history.responses
        if response.error in INFO_CODES or any(code in INFO_CODES for _, code in response.elements)
    }
    for request_id, event in history.received.items():
        if event["route"] != "FORWARD":
            continue
        end = responded.get(request_id)
        if request_id in undecided or end is None or _leaves_it_open(end):
            yield request_id


def _leaves_it_open(responded: Event) -> bool:
    return bool(responded["closed"] or responded["error"] in INFO_CODES)


def _violation(key: str, event: Event, zxids: Mapping[str, set[int]]) -> Violation | None:
    """Return a violation if an element has two commits. `zxids`: the commits of each element."""
    twice = {
        element: zxids_of_element
        for element, zxids_of_element in zxids.items()
        if len(zxids_of_element) > 1
    }
    if not twice:
        return None
    element = min(twice)
    sentence = f"{key}: {element} got no definite response and took effect more than once"
    rows = [row_of(event), *map(zxid_row, sorted(set().union(*twice.values())))]
    return SPEC.violation(key, rows, sentence)


_INFO: Final = sql.listed(INFO_CODES)

INPUTS: Final = (
    "gold/requests",
    "gold/responses",
    "silver/outcomes",
    "gold/operations",
    "gold/client_outcomes",
)
SQL: Final = f"""
WITH undecided AS (
  SELECT DISTINCT run, request_id FROM responses
  WHERE error IN ({_INFO}) OR exists(elements, e -> e.error IN ({_INFO}))),
open_requests AS (
  SELECT r.run, r.request_id,
    concat('event/', received.node, '/', received.boot, '/', received.seq) AS row
  FROM requests r LEFT JOIN undecided u ON r.run = u.run AND r.request_id = u.request_id
  WHERE received.route = 'FORWARD' AND (responded IS NULL OR responded.closed
    OR coalesce(responded.error IN ({_INFO}), false) OR u.request_id IS NOT NULL)),
effects AS (
  SELECT o.run, o.request_id, o.element, collect_set(o.zxid) AS zxids FROM outcomes o
  JOIN open_requests q ON o.run = q.run AND o.request_id = q.request_id
  GROUP BY o.run, o.request_id, o.element),
twice AS (
  SELECT run, request_id, min(element) AS element,
    array_sort(array_distinct(flatten(collect_list(zxids)))) AS zxids
  FROM effects WHERE size(zxids) > 1 GROUP BY run, request_id),
open_operations AS (
  SELECT o.run, o.op_id, o.invoked_row,
    min(t.element) FILTER (WHERE t.named_once AND size(t.done) > 1) AS element,
    array_sort(array_distinct(flatten(collect_list(t.done)
      FILTER (WHERE t.named_once AND size(t.done) > 1)))) AS zxids
  FROM operations o LEFT JOIN client_outcomes t
    ON o.run = t.run AND o.op_id = t.op_id AND t.error IS NULL
  WHERE o.outcome = 'info' GROUP BY o.run, o.op_id, o.invoked_row),
judged AS (
  SELECT q.run, q.request_id AS source, q.row, t.element, t.zxids
  FROM open_requests q LEFT JOIN twice t ON q.run = t.run AND q.request_id = t.request_id
  UNION ALL
  SELECT run, op_id, invoked_row, element, zxids FROM open_operations)
SELECT run, CASE WHEN element IS NOT NULL THEN source END AS key,
  concat(array(row), {sql.zxid_rows("coalesce(zxids, array())")}) AS rows,
  concat(source, ': ', element, ' got no definite response and took effect more than once')
    AS sentence
FROM judged
"""
