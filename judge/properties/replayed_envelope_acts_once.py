"""F7: an Envelope that arrives more than once has one effect and one outcome.

Every later decision on the same request must agree with the committed outcome.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

from event_log.properties import INFO_CODES, Violation
from judge.history import NONE, Event, History, Identity, row_of
from judge.properties.violations import extra_violation, listed, zxid_row


def check(history: History) -> Iterator[Violation | None]:
    """Judge every identity whose Envelope arrived more than once."""
    received: dict[Identity, int] = defaultdict(int)
    for event in history.of_kind["envelope_received"]:
        received[_identity(event)] += 1
    replayed = {identity for identity, times in received.items() if times > 1}
    yield from (None for _ in replayed)
    decided: dict[Identity, list[Event]] = defaultdict(list)
    for event in history.of_kind["request_decided"]:
        decided[_identity(event)].append(event)
    for (identity, element), found in history.committed.items():
        if identity in replayed:
            zxids = {commit.zxid for commit, _ in found}
            first = next((c.zxid for c, outcome in found if outcome.error == NONE), None)
            yield from _violations(identity, element, zxids, first, decided[identity])


def _identity(event: Event) -> Identity:
    broker_id, incarnation, sequence = event["identity"]
    return broker_id, incarnation, sequence


def _violations(
    identity: Identity, element: str, zxids: set[int], done: int | None, decided: list[Event]
) -> Iterator[Violation]:
    key = "/".join((*map(str, identity), element))
    if len(zxids) > 1:
        sentence = f"{key} was committed more than once, at zxids {listed(zxids)}"
        yield extra_violation("F7", key, map(zxid_row, sorted(zxids)), sentence)
        return
    for event in decided:
        error: int = dict(event["elements"]).get(element, NONE)
        is_rejection = error != NONE and error not in INFO_CODES
        if done is not None and event["zxid"] >= done and is_rejection:
            sentence = f"{key} was committed at zxid {done}, but rejected with error code {error}"
            yield extra_violation("F7", key, [zxid_row(done), row_of(event)], sentence)
            return
