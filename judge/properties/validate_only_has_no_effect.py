"""D9: a request with validate_only commits nothing."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

from event_log.properties import Violation
from judge.history import History, Identity, identity_of, place_of, row_of
from judge.properties.violations import listed, violation, zxid_row


def check(history: History) -> Iterator[Violation | None]:
    """Look for commits of every request that was only to be validated."""
    written: dict[Identity, set[int]] = defaultdict(set)
    for commit, outcome in history.outcomes:
        written[identity_of(outcome)].add(commit.zxid)
    for event in history.of_kind["request_decided"]:
        if not event["validate_only"]:
            continue
        broker_id, incarnation, sequence = event["identity"]
        zxids = sorted(written.get((broker_id, incarnation, sequence), ()))
        if not zxids:
            yield None
            continue
        rows = [row_of(event), *map(zxid_row, zxids)]
        sentence = (
            f"{event['request_id']} was only to be validated, but was committed at zxids "
            f"{listed(zxids)}"
        )
        yield violation("D9", place_of(event), rows, sentence)
