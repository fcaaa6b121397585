"""A forwarded request is answered, or its connection ends, within its time limit.

The limit is the brokers' `request.timeout.ms` plus a reserve. A paused process answers nothing, so
requests that a paused broker received are not judged.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from typing import Final

from judge import sql
from judge.history import Boot, History, boot_of, row_of
from judge.property import PropertySpec, Violation

SPEC: Final = PropertySpec(
    id="L1",
    name="response_is_sent_in_time",
    statement="within its time limit, a forwarded request is answered or its connection ends",
    witnesses=("events",),
    row="forwarded requests, except requests to brokers that a fault paused",
    key="<request id>",
    gap_blocks_fail=True,  # the gap may hide the response
    violated="HANG",
)

# On a busy machine, a response and the last attempt to forward (resends_end_at_deadline) may be
# this much after the time limit.
RESPONDED_LATER_MS_MAX: Final = 5_000


def check(history: History) -> Iterator[Violation | None]:
    """Measure the time from the receipt of each forwarded request to its end."""
    limit_ms = history.run.request_timeout_ms + RESPONDED_LATER_MS_MAX
    responded = {e["request_id"]: e for e in history.of_kind["responded"]}
    closed = {(boot_of(e), e["connection"]): e for e in history.of_kind["disconnected"]}
    last_ns: dict[Boot, int] = defaultdict(int)
    for event in history.events:
        boot = boot_of(event)
        last_ns[boot] = max(last_ns[boot], event["mono_ns"])
    for request_id, event in history.received.items():
        if event["route"] != "FORWARD" or event["node"] in history.paused:
            continue
        end = responded.get(request_id) or closed.get((boot_of(event), event["connection"]))
        ended_ns = end["mono_ns"] if end is not None else last_ns[boot_of(event)]
        took_ms = (ended_ns - event["mono_ns"]) // 1_000_000
        if took_ms <= limit_ms:
            yield None
            continue
        sentence = (
            f"{request_id}: for {took_ms} ms broker {event['node']} neither answered it nor lost "
            f"its connection; the limit is {limit_ms} ms"
        )
        yield SPEC.violation(request_id, [row_of(event)], sentence)


INPUTS: Final = (
    *("silver/disconnected", "silver/fault_injected", "silver/boots"),
    *("gold/requests", "runs"),
)
SQL: Final = f"""
WITH {sql.PAUSED},
closed AS (
  SELECT run, node, boot, connection, max_by(mono_ns, seq) AS at_ns FROM disconnected
  GROUP BY run, node, boot, connection),
lives AS (SELECT run, node, boot, last_ns FROM boots WHERE source <> 'client'),
forwarded AS (
  SELECT run, request_id, received.node AS node, received.boot AS boot, received.seq AS seq,
    received.connection AS connection, received.mono_ns AS began_ns,
    responded.mono_ns AS responded_ns
  FROM requests WHERE received.route = 'FORWARD'),
timed AS (
  SELECT /*+ BROADCAST(z), BROADCAST(l), BROADCAST(n) */
    f.run, f.request_id, f.node, f.boot, f.seq,
    n.request_timeout_ms + {RESPONDED_LATER_MS_MAX} AS limit_ms,
    floor(({sql.WIDE.format("coalesce(f.responded_ns, c.at_ns, l.last_ns)")} - f.began_ns)
      / 1000000) AS took_ms
  FROM forwarded f JOIN runs n ON f.run = n.run
  LEFT ANTI JOIN paused z ON f.run = z.run AND f.node = z.node
  LEFT JOIN closed c ON f.run = c.run AND f.node = c.node AND f.boot = c.boot
    AND f.connection = c.connection
  LEFT JOIN lives l ON f.run = l.run AND f.node = l.node AND f.boot = l.boot)
SELECT run, CASE WHEN took_ms > limit_ms THEN request_id END AS key,
  array({sql.row_of("timed")}) AS rows,
  concat(request_id, ': for ', took_ms, ' ms broker ', node,
    ' neither answered it nor lost its connection; the limit is ', limit_ms, ' ms') AS sentence
FROM timed
"""
