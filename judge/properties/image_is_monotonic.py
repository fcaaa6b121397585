"""R2: the zxid of an image never decreases."""

from __future__ import annotations

from collections.abc import Iterator

from event_log.properties import Violation
from judge.history import Event, History, boot_of, place_of, row_of
from judge.properties.violations import violation


def check(history: History) -> Iterator[Violation | None]:
    """Compare each image of a boot with the one before it."""
    events = history.of_kind["image_advanced"]
    before: dict[tuple[object, str], Event] = {}
    for event in sorted(events, key=lambda e: (*boot_of(e), e["seq"])):
        key = (boot_of(event), event["side"])
        known = before.get(key)
        before[key] = event
        if known is None or event["zxid"] >= known["zxid"]:
            yield None
            continue
        sentence = (
            f"the {event['side']} image of node {event['node']} went back from zxid "
            f"{known['zxid']} to {event['zxid']}"
        )
        yield violation("R2", place_of(event), [row_of(known), row_of(event)], sentence)
