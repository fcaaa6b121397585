"""F7: an Envelope that arrives again has one effect in all, and one answer.

What was committed for an element is what every later decision of the same request must say of it.
"""

from __future__ import annotations

from collections import defaultdict
from typing import Final

from chaos.history import NONE, Event, History, Identity, row_of
from chaos.properties.breach import violation, zxid
from chaos.verdicts import Finding, Property
from event_log.promises import INFO_CODES, Violation


def check(history: History) -> Finding:
    """Judge every identity whose Envelope was received more than once."""
    received: dict[Identity, list[Event]] = defaultdict(list)
    for event in history.of_kind["envelope_received"]:
        received[_identity(event)].append(event)
    replayed = {identity: events for identity, events in received.items() if len(events) > 1}
    decided: dict[Identity, list[Event]] = defaultdict(list)
    for event in history.of_kind["request_decided"]:
        decided[_identity(event)].append(event)
    violations = []
    for (identity, element), found in history.committed.items():
        if identity in replayed:
            zxids = sorted({commit.zxid for commit, _ in found})
            first = next((c.zxid for c, outcome in found if outcome.error == NONE), None)
            breach = _breach(identity, element, zxids, first, decided[identity])
            if breach is not None:
                violations.append(breach)
    return Finding(len(replayed), tuple(violations))


def _identity(event: Event) -> Identity:
    broker_id, incarnation, sequence = event["identity"]
    return broker_id, incarnation, sequence


def _breach(
    identity: Identity, element: str, zxids: list[int], done: int | None, decided: list[Event]
) -> Violation | None:
    key = "/".join((*map(str, identity), element))
    if len(zxids) > 1:
        sentence = f"{element} of request {key} was committed at {', '.join(map(str, zxids))}"
        return violation("F7", key, [zxid(each) for each in zxids], sentence)
    for event in decided:
        told: int = dict(event["elements"]).get(element, NONE)
        if done is not None and event["zxid"] >= done and told != NONE and told not in INFO_CODES:
            sentence = f"{element} of request {key} was committed at {done} and answered {told}"
            return violation("F7", key, [zxid(done), row_of(event)], sentence)
    return None


PROPERTY: Final = Property("F7", check)
