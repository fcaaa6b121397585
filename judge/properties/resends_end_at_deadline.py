"""A broker resends no request that is answered or whose time limit has passed.

KAFKA-10667: brokers forwarded requests for ever, although their clients had given up. The limit is
the brokers' `request.timeout.ms` plus a reserve. Brokers that a fault paused are not judged.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from judge import sql
from judge.history import History, boot_of, place_of, row_of
from judge.properties.response_is_sent_in_time import RESPONDED_LATER_MS_MAX
from judge.property import PropertySpec, Violation

SPEC: Final = PropertySpec(
    id="F8",
    name="resends_end_at_deadline",
    statement="a broker does not resend a request after the response or after the time limit "
    "of the request",
    witnesses=("events",),
    row="attempts to forward clients' requests, except attempts of brokers that a fault paused",
    key="<node>/<boot>/<seq>",
    gap_blocks_fail=True,  # the gap may hide the record of the pause
)


def check(history: History) -> Iterator[Violation | None]:
    """Compare the time of each attempt with the times of the request's receipt and response."""
    limit_ms = history.run.request_timeout_ms + RESPONDED_LATER_MS_MAX
    responded = {e["request_id"]: e for e in history.of_kind["responded"]}
    for event in history.of_kind["forward_sent"]:
        received = history.received.get(event["request_id"])
        if received is None or boot_of(received) != boot_of(event):
            continue
        if event["node"] in history.paused:
            continue
        late_ms = (event["mono_ns"] - received["mono_ns"]) // 1_000_000
        response = responded.get(event["request_id"])
        wrong = ""
        if response is not None and response["seq"] < event["seq"]:
            wrong = "after its response"
        elif late_ms > limit_ms:
            wrong = f"{late_ms} ms after its receipt; the limit is {limit_ms} ms"
        if not wrong:
            yield None
            continue
        sentence = (
            f"{event['request_id']}: broker {event['node']} sent attempt {event['attempt']} {wrong}"
        )
        yield SPEC.violation(place_of(event), [row_of(received), row_of(event)], sentence)


INPUTS: Final = ("silver/forward_sent", "silver/fault_injected", "gold/requests", "runs")
SQL: Final = f"""
WITH {sql.PAUSED},
timed AS (
  SELECT /*+ BROADCAST(z), BROADCAST(n) */ s.run, s.node, s.boot, s.seq, s.request_id, s.attempt,
    r.received, r.responded, n.request_timeout_ms + {RESPONDED_LATER_MS_MAX} AS limit_ms,
    floor(({sql.WIDE.format("s.mono_ns")} - r.received.mono_ns) / 1000000) AS late_ms
  FROM forward_sent s JOIN requests r ON s.run = r.run AND s.request_id = r.request_id
    AND s.node = r.received.node AND s.boot = r.received.boot
  JOIN runs n ON s.run = n.run
  LEFT ANTI JOIN paused z ON s.run = z.run AND s.node = z.node),
judged AS (
  SELECT *, CASE WHEN responded.seq < seq THEN 'after its response'
    WHEN late_ms > limit_ms
      THEN concat(late_ms, ' ms after its receipt; the limit is ', limit_ms, ' ms') END AS wrong
  FROM timed)
SELECT run, CASE WHEN wrong IS NOT NULL THEN {sql.place_of("judged")} END AS key,
  array({sql.row_of("received")}, {sql.row_of("judged")}) AS rows,
  concat(request_id, ': broker ', node, ' sent attempt ', attempt, ' ', wrong) AS sentence
FROM judged
"""
