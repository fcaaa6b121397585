"""K2: every request gets one response, or its connection was lost.

A boot is the life of one process. If a boot stopped cleanly, every request has a response and
every forwarding attempt has an end, unless the client disconnected. If a boot was killed, requests
may lack a response and attempts may lack an end. No boot answers a request that it did not receive,
and no boot answers a request twice.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator

from event_log.properties import Violation
from judge.history import Event, History, boot_of, row_of
from judge.properties.violations import violation


def check(history: History) -> Iterator[Violation | None]:
    """Judge every request and every forwarding attempt."""
    stopped = {boot_of(e) for e in history.of_kind["stopped"]}
    lost = {(boot_of(e), e["connection"]) for e in history.of_kind["disconnected"]}

    def may_stay_open(event: Event) -> bool:
        if boot_of(event) not in stopped:
            return True
        return (boot_of(event), event.get("connection")) in lost

    yield from _pairs(history, "request_received", "answered", ("request_id",), may_stay_open)
    # An attempt may lack an end if its request may lack a response.
    requests = {e["request_id"]: e for e in history.of_kind["request_received"]}

    def attempt_may_stay_open(event: Event) -> bool:
        request = requests.get(event["request_id"])
        return request is None or may_stay_open(request)

    fields = ("request_id", "attempt")
    yield from _pairs(history, "forward_sent", "forward_answered", fields, attempt_may_stay_open)


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
        rows = [row_of(each) for each in (*first, *last)]
        yield violation("K2", key, rows, f"{key} {wrong}") if wrong else None
