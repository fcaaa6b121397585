"""K7: a node resigns as controller before it applies metadata of a later controller.

Two nodes that both act as controller confuse clients and operators, even if only one can write.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

from event_log.properties import Violation
from judge.history import Boot, Event, History, boot_of, place_of, row_of
from judge.properties.violations import violation


def check(history: History) -> Iterator[Violation | None]:
    """Compare each image of a broker with the epochs in which its node is the controller."""
    kinds = ("became_active", "resigned", "image_advanced")
    events = [event for kind in kinds for event in history.of_kind[kind]]
    active: dict[Boot, dict[int, Event]] = defaultdict(dict)  # became_active by epoch
    for event in sorted(events, key=lambda e: (*boot_of(e), e["seq"])):
        own, epoch = active[boot_of(event)], event["epoch"]
        if event["kind"] == "became_active":
            own[epoch] = event
        elif event["kind"] == "resigned":
            own.pop(epoch, None)
        elif event["side"] == "broker":
            yield _image(event, own)


def _image(image: Event, active: dict[int, Event]) -> Violation | None:
    held = max((epoch for epoch in active if epoch < image["epoch"]), default=None)
    if held is None:
        return None
    return violation(
        "K7",
        place_of(image),
        [row_of(active[held]), row_of(image)],
        f"broker {image['node']} applied metadata of epoch {image['epoch']}, but had not resigned "
        f"as controller of epoch {held}",
    )
