"""K3: every boot's events are there without a hole, up to its end, and written by one.

Holes are found when the lines are read and make this UNKNOWN; here is what a reader of whole lines
can still find wrong.
"""

from __future__ import annotations

from typing import Final

from chaos.history import Boot, Event, History, boot_of, place_of, row_of
from chaos.properties.breach import violation
from chaos.verdicts import Finding, Property


def check(history: History) -> Finding:
    """Judge every boot of every process that wrote events."""
    violations = []
    for node, boot, seq in history.evidence.two_writers:
        key = f"{node}/{boot}/{seq}"
        sentence = f"event {seq} of node {node} boot {boot} was written twice, differently"
        violations.append(violation("K3", key, [f"event/{key}"], sentence))
    last: dict[Boot, Event] = {}
    stopped: dict[Boot, Event] = {}
    for event in (*history.events, *history.evidence.clients):
        boot_key = boot_of(event)
        if boot_key not in last or last[boot_key]["seq"] < event["seq"]:
            last[boot_key] = event
        if event["kind"] == "stopped":
            stopped[boot_key] = event
    for boot_key, event in stopped.items():
        after = last[boot_key]
        if after["seq"] > event["seq"]:
            sentence = f"node {event['node']} wrote an event after it had stopped"
            rows = [row_of(event), row_of(after)]
            violations.append(violation("K3", place_of(after), rows, sentence))
    return Finding(len(last), tuple(violations))


PROPERTY: Final = Property("K3", check)
