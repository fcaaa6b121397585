"""On each connection, responses have the order of the requests.

Kafka's clients rely on it: they match each response to their oldest open request. The request
inside an Envelope that a client sent (`<request id>.inner`) has no response of its own on the
connection, so it is not judged.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from typing import Final

from judge import sql
from judge.history import Boot, Event, History, boot_of, row_of
from judge.property import PropertySpec, Violation

SPEC: Final = PropertySpec(
    id="F4",
    name="responses_keep_their_order",
    statement="on each connection, the responses have the same order as the requests",
    witnesses=("events",),
    row="responses to requests that have a request_received event, except requests in "
    "Envelopes that clients sent",
    key="<request id>",
)

# The suffix of the id of a request that a client sent in an Envelope.
INNER: Final = ".inner"


def check(history: History) -> Iterator[Violation | None]:
    """Compare each response with the responses before it on its connection."""
    latest: dict[tuple[Boot, str], Event] = {}  # the answered request that was received last
    by_boot: dict[Boot, list[Event]] = defaultdict(list)
    for event in history.of_kind["responded"]:
        by_boot[boot_of(event)].append(event)
    for boot, events in sorted(by_boot.items()):
        for event in sorted(events, key=lambda e: e["seq"]):
            request = history.received.get(event["request_id"])
            if request is None or boot_of(request) != boot:
                continue
            if event["request_id"].endswith(INNER):
                continue
            connection = boot, request["connection"]
            before = latest.setdefault(connection, request)
            if before["seq"] <= request["seq"]:
                latest[connection] = request
                yield None
                continue
            yield SPEC.violation(
                request["request_id"],
                [row_of(request), row_of(event)],
                f"{request['request_id']}: broker {event['node']} answered it after "
                f"{before['request_id']}, which came later on the same connection",
            )


INPUTS: Final = ("silver/responded", "gold/requests")
SQL: Final = f"""
WITH responses AS (
  SELECT e.run, e.node, e.boot, e.seq, e.request_id, r.received
  FROM responded e JOIN requests r ON e.run = r.run AND e.request_id = r.request_id
    AND e.node = r.received.node AND e.boot = r.received.boot
  WHERE NOT endswith(e.request_id, '{INNER}')),
followed AS (
  SELECT *, max(struct(received.seq AS seq, request_id AS request_id))
    OVER (PARTITION BY run, node, boot, received.connection ORDER BY seq
      ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS before
  FROM responses)
SELECT run, CASE WHEN before.seq > received.seq THEN request_id END AS key,
  array({sql.row_of("received")}, {sql.row_of("followed")}) AS rows,
  concat(request_id, ': broker ', node, ' answered it after ', before.request_id,
    ', which came later on the same connection') AS sentence
FROM followed
"""
