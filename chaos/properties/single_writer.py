"""W1: every metadata write is made by the session that holds the epoch then in force."""

from __future__ import annotations

from bisect import bisect_right
from typing import Final

from chaos.history import History
from chaos.properties.breach import violation, zxid
from chaos.verdicts import Finding, Property


def check(history: History) -> Finding:
    """Judge every applied transaction that writes metadata."""
    terms = history.terms
    begins = [term.zxid for term in terms]
    judged = 0
    violations = []
    for commit, writes in history.admin_writes:
        judged += 1
        at = bisect_right(begins, commit.zxid) - 1
        holder = terms[at] if at >= 0 else None
        if holder is not None and holder.session == commit.session:
            continue
        who = f"session {holder.session} holds epoch {holder.epoch}" if holder else "nobody does"
        sentence = (
            f"zxid {commit.zxid}: session {commit.session} wrote {writes[0].path}; "
            f"of the controller's office, {who}"
        )
        rows = [zxid(commit.zxid)] + ([zxid(holder.zxid)] if holder else [])
        violations.append(violation("W1", commit.zxid, rows, sentence))
    return Finding(judged, tuple(violations))


PROPERTY: Final = Property("W1", check)
