"""K3: every boot has all its events up to its end, written by one process.

A boot is the life of one process. When the lines are read, missing events are recorded as gaps,
which result in UNKNOWN. This check finds errors in the events that exist.
"""

from __future__ import annotations

from collections.abc import Iterator

from event_log.properties import Violation
from judge.history import Boot, Event, History, boot_of, place_of, row_of
from judge.properties.violations import extra_violation, violation


def check(history: History) -> Iterator[Violation | None]:
    """Judge every boot of every process that wrote events."""
    for node, boot, seq in history.evidence.two_writers:
        key = f"{node}/{boot}/{seq}"
        sentence = f"event {seq} of node {node} boot {boot} exists twice, with different content"
        yield extra_violation("K3", key, [f"event/{key}"], sentence)
    last: dict[Boot, Event] = {}
    stopped: dict[Boot, Event] = {}
    for event in (*history.events, *history.evidence.clients):
        boot_key = boot_of(event)
        if boot_key not in last or last[boot_key]["seq"] < event["seq"]:
            last[boot_key] = event
        if event["kind"] == "stopped":
            stopped[boot_key] = event
    for boot_key, after in last.items():
        end = stopped.get(boot_key, after)
        if after["seq"] <= end["seq"]:
            yield None
            continue
        sentence = f"node {end['node']} wrote an event after it had stopped"
        yield violation("K3", place_of(after), [row_of(end), row_of(after)], sentence)
