"""K1: every counter that a node shows equals the number of its events before it, in that boot."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping
from typing import Final

from chaos.history import Boot, Event, History, boot_of, place_of, row_of
from chaos.properties.breach import violation
from chaos.verdicts import Finding, Property

REDIRECTED: Final = "num_messages_redirected_count"
AUTHORIZATION_FAILED: Final = "request_forwarding_to_controller_authorization_fail_count"
NOT_CONTROLLER_ANSWERS: Final = "not_controller_answers_count"
REQUESTS: Final = "kafka_network_requestmetrics_requests_count"  # summed over its labels
_CLUSTER_AUTHORIZATION_FAILED: Final = 31
_NOT_CONTROLLER: Final = 41


def _redirects(event: Event) -> str | None:
    """A request is counted once, however often it is sent; within the own process never."""
    if event["kind"] != "forward_sent" or event["local"]:
        return None
    return str(event["request_id"])


def _is(kind: str, **fields: object) -> Callable[[Event], str | None]:
    def counts(event: Event) -> str | None:
        if event["kind"] != kind or any(event[name] != value for name, value in fields.items()):
            return None
        return str(event["seq"])

    return counts


# What makes a counter grow: the event's identity, None where it does not.
COUNTERS: Final[Mapping[str, Callable[[Event], str | None]]] = {
    REDIRECTED: _redirects,
    AUTHORIZATION_FAILED: _is("envelope_refused", error=_CLUSTER_AUTHORIZATION_FAILED),
    NOT_CONTROLLER_ANSWERS: _is("answered", route="NOT_CONTROLLER", error=_NOT_CONTROLLER),
    REQUESTS: _is("answered"),
}


def check(history: History) -> Finding:
    """Judge each counter of each snapshot."""
    boots: dict[Boot, list[Event]] = defaultdict(list)
    for event in history.events:
        boots[boot_of(event)].append(event)
    judged = 0
    violations = []
    for events in boots.values():
        counted: dict[str, set[str]] = {name: set() for name in COUNTERS}
        for event in sorted(events, key=lambda each: each["seq"]):
            if event["kind"] != "metrics_snapshot":
                for name, counts in COUNTERS.items():
                    if (one := counts(event)) is not None:
                        counted[name].add(one)
                continue
            for name in COUNTERS:
                shown = _shown(event["values"], name)
                judged += 1
                if shown == len(counted[name]):
                    continue
                sentence = (
                    f"node {event['node']} shows {name} = {shown:g}; its events make it "
                    f"{len(counted[name])}"
                )
                key = f"{place_of(event)}/{name}"
                violations.append(violation("K1", key, [row_of(event)], sentence))
    return Finding(judged, tuple(violations))


def _shown(values: Mapping[str, float], name: str) -> float:
    """Return a counter's value, the sum of all its labels; 0 for one that was never counted."""
    return sum(v for key, v in values.items() if key == name or key.startswith(f"{name}{{"))


PROPERTY: Final = Property("K1", check)
