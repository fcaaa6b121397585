"""L1: a forwarded request is answered, or its connection ends, within its time limit.

The limit is the brokers' `request.timeout.ms` plus a reserve. A frozen process answers nothing, so
requests that a frozen broker received are not judged.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

from event_log.properties import ANSWERED_LATER_MS_MAX, Violation
from judge.history import Boot, History, boot_of, row_of
from judge.properties.violations import violation


def check(history: History) -> Iterator[Violation | None]:
    """Measure the time from the receipt of each forwarded request to its end."""
    limit_ms = history.run.request_timeout_ms + ANSWERED_LATER_MS_MAX
    answered = {e["request_id"]: e for e in history.of_kind["answered"]}
    closed = {(boot_of(e), e["connection"]): e for e in history.of_kind["disconnected"]}
    last_ns: dict[Boot, int] = defaultdict(int)
    for event in history.events:
        boot = boot_of(event)
        last_ns[boot] = max(last_ns[boot], event["mono_ns"])
    for request_id, event in history.received.items():
        if event["route"] != "FORWARD" or event["node"] in history.frozen:
            continue
        end = answered.get(request_id) or closed.get((boot_of(event), event["connection"]))
        ended_ns = end["mono_ns"] if end is not None else last_ns[boot_of(event)]
        took_ms = (ended_ns - event["mono_ns"]) // 1_000_000
        if took_ms <= limit_ms:
            yield None
            continue
        sentence = (
            f"{request_id}: for {took_ms} ms broker {event['node']} neither answered it nor lost "
            f"its connection; the limit is {limit_ms} ms"
        )
        yield violation("L1", request_id, [row_of(event)], sentence)
