"""W7: a node acts as controller only between its election and its resignation.

The term begins with `claim_sent`, not with `became_active`, because an elected candidate commits
even while it loads its image. A claim does not count if another process became active in the same
epoch: then the candidate lost the election.

In KAFKA-4447 and KAFKA-2300, a controller that had resigned still processed queued events.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from typing import Final

from event_log.properties import Violation
from judge.history import Boot, History, boot_of, place_of, row_of
from judge.properties.violations import violation

_BEGINS: Final = ("claim_sent", "became_active")
_ACTS: Final = ("execution_started", "request_decided", "commit_sent")


def check(history: History) -> Iterator[Violation | None]:
    """Compare each act with the epochs in which its node is the active controller."""
    kinds = (*_BEGINS, "resigned", *_ACTS)
    events = [event for kind in kinds for event in history.of_kind[kind]]
    elected: dict[int, set[Boot]] = defaultdict(set)
    for event in history.of_kind["became_active"]:
        elected[event["epoch"]].add(boot_of(event))
    active: dict[Boot, set[int]] = defaultdict(set)
    for event in sorted(events, key=lambda e: (*boot_of(e), e["seq"])):
        boot, epoch = boot_of(event), event["epoch"]
        own = active[boot]
        if event["kind"] in _BEGINS:
            own.add(epoch)
        elif event["kind"] == "resigned":
            own.discard(epoch)
        elif epoch and epoch in own and boot in elected.get(epoch, {boot}):
            yield None
        elif epoch:  # 0: a direct write of a broker below the bridge release
            sentence = (
                f"node {event['node']} wrote {event['kind']} of epoch {epoch}, but was not the "
                "active controller of that epoch"
            )
            yield violation("W7", place_of(event), [row_of(event)], sentence)
