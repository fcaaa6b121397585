"""Every request gets one response, or its connection was lost.

A boot is the life of one process. If a boot stopped cleanly, every request has a response and
every forwarding attempt has an end, unless the client disconnected. If a boot was killed, requests
may lack a response and attempts may lack an end. No boot answers a request that it did not receive,
and no boot answers a request twice.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator
from typing import Final

from judge import sql
from judge.history import Event, History, boot_of, row_of
from judge.property import PropertySpec, Violation

SPEC: Final = PropertySpec(
    id="K2",
    name="flows_are_conserved",
    statement="every request gets exactly one response, unless its connection is lost",
    witnesses=("events",),
    row="received requests, and attempts to forward",
    key="<request id> or <request id>/<attempt>",
    gap_blocks_fail=True,
)


def check(history: History) -> Iterator[Violation | None]:
    """Judge every request and every forwarding attempt."""
    stopped = {boot_of(e) for e in history.of_kind["stopped"]}
    lost = {(boot_of(e), e["connection"]) for e in history.of_kind["disconnected"]}

    def may_stay_open(event: Event) -> bool:
        if boot_of(event) not in stopped:
            return True
        return (boot_of(event), event.get("connection")) in lost

    yield from _pairs(history, "request_received", "responded", ("request_id",), may_stay_open)
    # An attempt may lack an end if its request may lack a response.
    requests = {e["request_id"]: e for e in history.of_kind["request_received"]}

    def attempt_may_stay_open(event: Event) -> bool:
        request = requests.get(event["request_id"])
        return request is None or may_stay_open(request)

    fields = ("request_id", "attempt")
    yield from _pairs(history, "forward_sent", "forward_replied", fields, attempt_may_stay_open)


def _pairs(
    history: History,
    began: str,
    ended: str,
    fields: tuple[str, ...],
    may_stay_open: Callable[[Event], bool],
) -> Iterator[Violation | None]:
    begins: dict[str, list[Event]] = defaultdict(list)
    ends: dict[str, list[Event]] = defaultdict(list)
    for kind, events in ((began, begins), (ended, ends)):
        for event in history.of_kind[kind]:
            events["/".join(str(event[name]) for name in fields)].append(event)
    for key in sorted(begins.keys() | ends.keys()):
        first, last = begins[key], ends[key]
        wrong = None
        if not first:
            wrong = f"has {ended} without {began}"
        elif len(first) > 1:
            wrong = f"has {began} {len(first)} times"
        elif len(last) > 1:
            wrong = f"has {ended} {len(last)} times"
        elif not last and not may_stay_open(first[0]):
            wrong = f"has {began} without {ended}"
        rows = [row_of(commit) for commit in (*first, *last)]
        yield SPEC.violation(key, rows, f"{key} {wrong}") if wrong else None


_ROWS: Final = f"transform({{0}}, x -> {sql.row_of('x')})"
_WRONG: Final = """CASE
    WHEN {begun} = 0 THEN 'has {ended_by} without {begun_by}'
    WHEN {begun} > 1 THEN concat('has {begun_by} ', {begun}, ' times')
    WHEN {ended} > 1 THEN concat('has {ended_by} ', {ended}, ' times')
    WHEN {ended} = 0 AND NOT may_stay_open THEN 'has {begun_by} without {ended_by}' END"""

INPUTS: Final = ("silver/disconnected", "silver/boots", "gold/requests", "gold/forwards")
SQL: Final = f"""
WITH stopped AS (SELECT run, node, boot FROM boots WHERE stopped_seq IS NOT NULL),
lost AS (
  SELECT DISTINCT run, node, boot, connection FROM disconnected),
unended AS (SELECT DISTINCT run, request_id FROM forwards WHERE times_returned = 0),
-- Joined only for open requests.
open AS (
  SELECT r.run, r.request_id, s.run IS NULL OR l.run IS NOT NULL AS may_stay_open
  FROM requests r
  LEFT JOIN unended u ON r.run = u.run AND r.request_id = u.request_id
  LEFT JOIN stopped s ON r.run = s.run AND get(r.receipts, 0).node = s.node
    AND get(r.receipts, 0).boot = s.boot
  LEFT JOIN lost l ON r.run = l.run AND get(r.receipts, 0).node = l.node
    AND get(r.receipts, 0).boot = l.boot AND r.received.connection = l.connection
  WHERE r.times_received > 0 AND (r.times_responded = 0 OR u.run IS NOT NULL)),
requests_judged AS (
  SELECT r.run, r.request_id AS key, r.times_received, r.times_responded, r.receipts, r.responses,
    coalesce(o.may_stay_open, true) AS may_stay_open
  FROM requests r LEFT JOIN open o ON r.run = o.run AND r.request_id = o.request_id
  WHERE r.times_received > 0 OR r.times_responded > 0),
attempts_judged AS (
  SELECT f.run, concat(f.request_id, '/', f.attempt) AS key, f.times_sent, f.times_returned,
    f.sent, f.returned, coalesce(o.may_stay_open, true) AS may_stay_open
  FROM forwards f LEFT JOIN open o ON f.run = o.run AND f.request_id = o.request_id),
judged AS (
  SELECT run, key, receipts AS began, responses AS ended, {
    _WRONG.format(
        begun="times_received",
        ended="times_responded",
        begun_by="request_received",
        ended_by="responded",
    )
} AS wrong
  FROM requests_judged
  UNION ALL
  SELECT run, key, sent, returned, {
    _WRONG.format(
        begun="times_sent",
        ended="times_returned",
        begun_by="forward_sent",
        ended_by="forward_replied",
    )
}
  FROM attempts_judged)
SELECT run, CASE WHEN wrong IS NOT NULL THEN key END AS key,
  concat({_ROWS.format("coalesce(began, array())")}, {_ROWS.format("coalesce(ended, array())")})
    AS rows,
  concat(key, ' ', wrong) AS sentence
FROM judged
"""
