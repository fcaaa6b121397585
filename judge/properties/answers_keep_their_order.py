"""F4: on each connection, responses have the order of the requests.

Kafka's clients rely on it: they match each response to their oldest open request. The request
inside an Envelope that a client sent (`<request id>.inner`) has no response of its own on the
connection, so it is not judged.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

from event_log.properties import INNER, Violation
from judge.history import Boot, Event, History, boot_of, row_of
from judge.properties.violations import violation


def check(history: History) -> Iterator[Violation | None]:
    """Compare each response with the responses before it on its connection."""
    latest: dict[tuple[Boot, str], Event] = {}  # the answered request that was received last
    by_boot: dict[Boot, list[Event]] = defaultdict(list)
    for event in history.of_kind["answered"]:
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
            yield violation(
                "F4",
                request["request_id"],
                [row_of(request), row_of(event)],
                f"{request['request_id']}: broker {event['node']} answered it after "
                f"{before['request_id']}, which came later on the same connection",
            )
