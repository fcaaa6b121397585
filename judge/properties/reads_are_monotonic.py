"""On each connection, a read never returns older metadata than the read before it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from judge import sql
from judge.history import Boot, Event, History, boot_of, row_of
from judge.property import PropertySpec, Violation

SPEC: Final = PropertySpec(
    id="R3",
    name="reads_are_monotonic",
    statement="on each connection, no read returns older metadata than the read before it",
    witnesses=("events",),
    row="responses that brokers made from their own image",
    key="<request id>",
)


def check(history: History) -> Iterator[Violation | None]:
    """Compare each read with the one before it on the same connection."""
    latest: dict[tuple[Boot, str], Event] = {}
    for event in sorted(history.of_kind["responded"], key=lambda e: (*boot_of(e), e["seq"])):
        request = history.received.get(event["request_id"])
        if event["route"] != "LOCAL" or event["zxid"] <= 0 or request is None:
            continue
        connection = boot_of(event), request["connection"]
        before = latest.get(connection)
        latest[connection] = event
        if before is None or event["zxid"] >= before["zxid"]:
            yield None
            continue
        sentence = (
            f"{event['request_id']}: broker {event['node']} answered it with metadata of zxid "
            f"{event['zxid']}, after metadata of zxid {before['zxid']} on the same connection"
        )
        yield SPEC.violation(event["request_id"], [row_of(before), row_of(event)], sentence)


INPUTS: Final = ("silver/responded", "gold/requests")
SQL: Final = f"""
WITH reads AS (
  SELECT e.run, e.node, e.boot, e.seq, e.request_id, e.zxid, r.received.connection AS connection
  FROM responded e JOIN requests r ON e.run = r.run AND e.request_id = r.request_id
  WHERE e.route = 'LOCAL' AND e.zxid > 0 AND r.received IS NOT NULL),
followed AS (
  SELECT *, lag(struct(node, boot, seq, zxid))
    OVER (PARTITION BY run, node, boot, connection ORDER BY seq) AS before
  FROM reads)
SELECT run, CASE WHEN zxid < before.zxid THEN request_id END AS key,
  array({sql.row_of("before")}, {sql.row_of("followed")}) AS rows,
  concat(request_id, ': broker ', node, ' answered it with metadata of zxid ', zxid,
    ', after metadata of zxid ', before.zxid, ' on the same connection') AS sentence
FROM followed
"""
