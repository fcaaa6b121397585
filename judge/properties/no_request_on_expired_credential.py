"""A10: no request is executed after the login of its client has expired.

A login expires with its credential, or earlier, after `connections.max.reauth.ms`. The event of a
login has the wall-clock time of the expiry. The time since the login is measured with the
monotonic clock, as in Kafka, because a wall clock may jump.
"""

from __future__ import annotations

from collections.abc import Iterator

from event_log.properties import RECORDED_LATER_MS_MAX, Violation
from judge.history import Boot, Event, History, boot_of, row_of
from judge.properties.violations import violation


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
    return violation(
        "A10",
        request["request_id"],
        [row_of(login), row_of(request)],
        f"{request['request_id']}: broker {request['node']} received it {late_ms} ms after the "
        f"login of {login['principal']} had expired",
    )
