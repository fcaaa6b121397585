"""Every boot has all its events up to its end, written by one process.

A boot is the life of one process. When the lines are read, missing events are recorded as gaps,
which result in UNKNOWN. This check finds errors in the events that exist.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from judge.history import Boot, Event, History, boot_of, place_of, row_of
from judge.property import PropertySpec, Violation

SPEC: Final = PropertySpec(
    id="K3",
    name="log_is_complete",
    statement="every boot has all its events up to its end, written by one process",
    witnesses=("events", "clients"),
    row="boots",
    key="<node>/<boot>/<seq>",
)


def check(history: History) -> Iterator[Violation | None]:
    """Judge every boot of every process that wrote events."""
    for node, boot, seq in history.evidence.two_writers:
        key = f"{node}/{boot}/{seq}"
        sentence = f"event {seq} of node {node} boot {boot} exists twice, with different content"
        yield SPEC.extra_violation(key, [f"event/{key}"], sentence)
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
        yield SPEC.violation(place_of(after), [row_of(end), row_of(after)], sentence)


INPUTS: Final = ("silver/boots", "silver/set_aside")
JUDGED: Final = "judged"
SQL: Final = """
WITH twice AS (
  SELECT run, concat(node, '/', boot, '/', seq) AS key,
    concat('event ', seq, ' of node ', node, ' boot ', boot,
      ' exists twice, with different content') AS sentence
  FROM set_aside WHERE fate = 'two_writers')
SELECT run, CASE WHEN last_seq > stopped_seq THEN concat(node, '/', boot, '/', last_seq) END AS key,
  array(concat('event/', node, '/', boot, '/', stopped_seq),
    concat('event/', node, '/', boot, '/', last_seq)) AS rows,
  concat('node ', node, ' wrote an event after it had stopped') AS sentence, 1 AS judged
FROM boots
UNION ALL
SELECT run, key, array(concat('event/', key)), sentence, 0 FROM twice
"""
