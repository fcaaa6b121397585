"""F8: a broker resends no request that is answered or whose time limit has passed.

KAFKA-10667: brokers forwarded requests for ever, although their clients had given up. The limit is
the brokers' `request.timeout.ms` plus a reserve. Brokers that a fault froze are not judged.
"""

from __future__ import annotations

from collections.abc import Iterator

from event_log.properties import ANSWERED_LATER_MS_MAX, Violation
from judge.history import History, boot_of, place_of, row_of
from judge.properties.violations import violation


def check(history: History) -> Iterator[Violation | None]:
    """Compare the time of each attempt with the times of the request's receipt and response."""
    limit_ms = history.run.request_timeout_ms + ANSWERED_LATER_MS_MAX
    answered = {e["request_id"]: e for e in history.of_kind["answered"]}
    for event in history.of_kind["forward_sent"]:
        received = history.received.get(event["request_id"])
        if received is None or boot_of(received) != boot_of(event):
            continue
        if event["node"] in history.frozen:
            continue
        late_ms = (event["mono_ns"] - received["mono_ns"]) // 1_000_000
        response = answered.get(event["request_id"])
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
        yield violation("F8", place_of(event), [row_of(received), row_of(event)], sentence)
