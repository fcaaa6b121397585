"""R3: on each connection, a read never returns older metadata than the read before it."""

from __future__ import annotations

from collections.abc import Iterator

from event_log.properties import Violation
from judge.history import Boot, Event, History, boot_of, row_of
from judge.properties.violations import violation


def check(history: History) -> Iterator[Violation | None]:
    """Compare each read with the one before it on the same connection."""
    latest: dict[tuple[Boot, str], Event] = {}
    for event in sorted(history.of_kind["answered"], key=lambda e: (*boot_of(e), e["seq"])):
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
        yield violation("R3", event["request_id"], [row_of(before), row_of(event)], sentence)
