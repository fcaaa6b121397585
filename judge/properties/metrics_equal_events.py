"""K1: a counter that a node reports equals the number of earlier events that it counts.

Only events of the same boot (the life of a node's process) count. Only the counters in `COUNTERS`
are judged.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from typing import Final

from event_log.properties import Violation
from judge.history import Boot, Event, History, boot_of, place_of, row_of
from judge.properties.violations import violation

_CLUSTER_AUTHORIZATION_FAILED, _NOT_CONTROLLER = 31, 41


def _redirects(event: Event) -> str | None:
    """Return the request id of an Envelope to another process: all its resends count as one."""
    return None if event["local"] else str(event["request_id"])


def _all(event: Event) -> str | None:
    return str(event["seq"])


def _with(**fields: object) -> Callable[[Event], str | None]:
    def counts(event: Event) -> str | None:
        if any(event[name] != value for name, value in fields.items()):
            return None
        return str(event["seq"])

    return counts


# For each kind of event, the counters that count it. The function of a counter returns a key for an
# event that the counter counts, else None. Events with equal keys count once.
COUNTED: Final[Mapping[str, Mapping[str, Callable[[Event], str | None]]]] = {
    "forward_sent": {"num_messages_redirected_count": _redirects},
    "envelope_refused": {
        "request_forwarding_to_controller_authorization_fail_count": _with(
            error=_CLUSTER_AUTHORIZATION_FAILED
        )
    },
    "answered": {
        "not_controller_answers_count": _with(route="NOT_CONTROLLER", error=_NOT_CONTROLLER),
        "kafka_network_requestmetrics_requests_count": _all,
    },
}
COUNTERS: Final = tuple(name for counters in COUNTED.values() for name in counters)


def check(history: History) -> Iterator[Violation | None]:
    """Judge each counter of each snapshot."""
    boots: dict[Boot, list[Event]] = defaultdict(list)
    for kind in (*COUNTED, "metrics_snapshot"):
        for event in history.of_kind[kind]:
            boots[boot_of(event)].append(event)
    for events in boots.values():
        counted: dict[str, set[str]] = {name: set() for name in COUNTERS}
        for event in sorted(events, key=lambda each: each["seq"]):
            if event["kind"] == "metrics_snapshot":
                for name, found in counted.items():
                    yield _compared(event, name, len(found))
                continue
            for name, counts in COUNTED[event["kind"]].items():
                if (one := counts(event)) is not None:
                    counted[name].add(one)


def _compared(event: Event, name: str, counted: int) -> Violation | None:
    """Compare a counter, summed over its labels, with the number of events that it counts."""
    values: Mapping[str, float] = event["values"]
    shown = sum(v for key, v in values.items() if key == name or key.startswith(f"{name}{{"))
    if shown == counted:
        return None
    number = int(shown) if float(shown).is_integer() else shown
    sentence = f"node {event['node']} reports {name} = {number}, but its events add up to {counted}"
    return violation("K1", f"{place_of(event)}/{name}", [row_of(event)], sentence)
