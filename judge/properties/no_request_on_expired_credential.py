"""No request is executed after the login of its client has expired.

A login expires with its credential, or earlier, after `connections.max.reauth.ms`. The event of a
login has the wall-clock time of the expiry. The time since the login is measured with the
monotonic clock, as in Kafka, because a wall clock may jump.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from judge import sql
from judge.history import Boot, Event, History, boot_of, row_of
from judge.property import PropertySpec, Violation

SPEC: Final = PropertySpec(
    id="A10",
    name="no_request_on_expired_credential",
    statement="no request is executed after the login of its client has expired",
    witnesses=("events",),
    row="requests received from clients whose login expires",
    key="<request id>",
    gap_blocks_fail=True,  # the gap may hide a reauthentication
)

# A broker checks the credential and then records the request. The record of a request that was
# checked just before the expiry may be this much later than the expiry.
RECORDED_LATER_MS_MAX: Final = 100


def check(history: History) -> Iterator[Violation | None]:
    """Compare each request with the last login on its connection."""
    events = [*history.of_kind["authenticated"], *history.of_kind["request_received"]]
    logins: dict[tuple[Boot, str], Event] = {}
    for event in sorted(events, key=lambda e: (*boot_of(e), e["seq"])):
        connection = boot_of(event), event["connection"]
        if event["kind"] == "authenticated":
            logins[connection] = event
        elif (login := logins.get(connection)) and login["ends_at_ms"] is not None:
            yield _request(login, event)


def _request(login: Event, request: Event) -> Violation | None:
    lasts_ms = login["ends_at_ms"] - login["wall_ms"]
    late_ms = (request["mono_ns"] - login["mono_ns"]) // 1_000_000 - lasts_ms
    if late_ms <= RECORDED_LATER_MS_MAX:
        return None
    return SPEC.violation(
        request["request_id"],
        [row_of(login), row_of(request)],
        f"{request['request_id']}: broker {request['node']} received it {late_ms} ms after the "
        f"login of {login['principal']} had expired",
    )


INPUTS: Final = ("silver/authenticated", "silver/request_received")
SQL: Final = f"""
WITH limited AS (
  SELECT DISTINCT run, node, boot, connection FROM authenticated WHERE ends_at_ms IS NOT NULL),
both AS (
  SELECT run, node, boot, seq, connection, NULL AS request_id, mono_ns,
    struct(node, boot, seq, principal, mono_ns, wall_ms, ends_at_ms) AS own_login
  FROM authenticated
  UNION ALL
  SELECT run, node, boot, seq, connection, request_id, mono_ns, NULL FROM request_received),
seen AS (
  SELECT e.* FROM both e LEFT SEMI JOIN limited l
    ON e.run = l.run AND e.node = l.node AND e.boot = l.boot AND e.connection = l.connection),
joined AS (
  SELECT *, last_value(own_login, true)
    OVER (PARTITION BY run, node, boot, connection ORDER BY seq) AS login
  FROM seen),
requests AS (
  SELECT run, node, boot, seq, request_id, login,
    floor(({sql.WIDE.format("mono_ns")} - login.mono_ns) / 1000000)
      - ({sql.WIDE.format("login.ends_at_ms")} - login.wall_ms) AS late_ms
  FROM joined WHERE request_id IS NOT NULL AND login.ends_at_ms IS NOT NULL)
SELECT run, CASE WHEN late_ms > {RECORDED_LATER_MS_MAX} THEN request_id END AS key,
  array({sql.row_of("login")}, {sql.row_of("requests")}) AS rows,
  concat(request_id, ': broker ', node, ' received it ', late_ms, ' ms after the login of ',
    login.principal, ' had expired') AS sentence
FROM requests
"""
