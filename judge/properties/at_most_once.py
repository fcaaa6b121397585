"""D3: no element of a request is committed twice, however often the request was sent."""

from __future__ import annotations

from collections.abc import Iterator

from event_log.properties import Violation
from judge.history import History
from judge.properties.violations import listed, violation, zxid_row


def check(history: History) -> Iterator[Violation | None]:
    """Judge every element that was committed."""
    for (identity, element), found in history.committed.items():
        zxids = sorted({commit.zxid for commit, _ in found})
        if len(zxids) < 2:
            yield None
            continue
        key = "/".join((*map(str, identity), element))
        request_id = found[0][1].request_id
        sentence = f"{request_id}: {element} was committed more than once, at zxids {listed(zxids)}"
        yield violation("D3", key, map(zxid_row, zxids), sentence)
