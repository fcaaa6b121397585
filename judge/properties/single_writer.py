"""W1: every metadata write is made by the session that holds the controller epoch."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator

from event_log.properties import Violation
from judge.history import History
from judge.properties.violations import violation, zxid_row


def check(history: History) -> Iterator[Violation | None]:
    """Judge every applied transaction that writes metadata."""
    terms = history.terms
    begins = [term.zxid for term in terms]
    for commit, writes in history.admin_writes:
        at = bisect_right(begins, commit.zxid) - 1
        holder = terms[at] if at >= 0 else None
        if holder is not None and holder.session == commit.session:
            yield None
            continue
        held = "no session held the controller epoch"
        if holder is not None:
            held = f"session {holder.session} held controller epoch {holder.epoch}"
        sentence = (
            f"zxid {commit.zxid}: session {commit.session} wrote {writes[0].path}, but {held}"
        )
        rows = [zxid_row(commit.zxid)] + ([zxid_row(holder.zxid)] if holder else [])
        yield violation("W1", commit.zxid, rows, sentence)
