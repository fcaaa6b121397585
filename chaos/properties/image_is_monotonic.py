"""R2: no image of the metadata goes back in time."""

from __future__ import annotations

from typing import Final

from chaos.history import Event, History, boot_of, place_of, row_of
from chaos.properties.breach import violation
from chaos.verdicts import Finding, Property


def check(history: History) -> Finding:
    """Judge each image of each boot against the one before it."""
    events = history.of_kind["image_advanced"]
    before: dict[tuple[object, str], Event] = {}
    violations = []
    for event in sorted(events, key=lambda e: (*boot_of(e), e["seq"])):
        key = (boot_of(event), event["side"])
        known = before.get(key)
        before[key] = event
        if known is not None and event["zxid"] < known["zxid"]:
            sentence = (
                f"the {event['side']}'s image of node {event['node']} went from zxid "
                f"{known['zxid']} to {event['zxid']}"
            )
            rows = [row_of(known), row_of(event)]
            violations.append(violation("R2", place_of(event), rows, sentence))
    return Finding(len(events), tuple(violations))


PROPERTY: Final = Property("R2", check)
