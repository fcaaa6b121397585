"""K2: what came in went out, or its connection was lost.

In a boot that stopped in an orderly way every request is answered unless its client had gone, and
every attempt to forward has its end. A killed boot may leave both open, but answers nothing that
it was not asked, and nothing twice.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator
from typing import Final

from chaos.history import Event, History, boot_of, row_of
from chaos.properties.breach import violation
from chaos.verdicts import Finding, Property
from event_log.promises import Violation


def check(history: History) -> Finding:
    """Judge every request and every attempt to forward."""
    stopped = {boot_of(e) for e in history.of_kind["stopped"]}
    lost = {(boot_of(e), e["connection"]) for e in history.of_kind["disconnected"]}

    def may_stay_open(event: Event) -> bool:
        if boot_of(event) not in stopped:
            return True
        return (boot_of(event), event.get("connection")) in lost

    requests = _pair(history, "request_received", "answered", ("request_id",), may_stay_open)
    judged = list(requests)
    # An attempt ends with its request, whose connection may be lost.
    connections = {e["request_id"]: e for e in history.of_kind["request_received"]}

    def attempt_may_stay_open(event: Event) -> bool:
        request = connections.get(event["request_id"])
        return request is None or may_stay_open(request)

    fields = ("request_id", "attempt")
    judged += _pair(history, "forward_sent", "forward_answered", fields, attempt_may_stay_open)
    return Finding(len(judged), tuple(each for each in judged if each is not None))


def _pair(
    history: History,
    began: str,
    ended: str,
    fields: tuple[str, ...],
    may_stay_open: Callable[[Event], bool],
) -> Iterator[Violation | None]:
    begins: dict[str, list[Event]] = defaultdict(list)
    ends: dict[str, list[Event]] = defaultdict(list)
    for event in history.of_kind[began]:
        begins["/".join(str(event[name]) for name in fields)].append(event)
    for event in history.of_kind[ended]:
        ends["/".join(str(event[name]) for name in fields)].append(event)
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


PROPERTY: Final = Property("K2", check)
