"""W4: each election raises the epoch by one, in the transaction that creates /controller."""

from __future__ import annotations

from collections.abc import Iterator

from event_log.properties import Violation
from judge.history import EPOCH, History, epoch_of, writes_of
from judge.properties.violations import violation, zxid_row


def check(history: History) -> Iterator[Violation | None]:
    """Judge every applied transaction that creates /controller or sets /controller_epoch."""
    known = history.evidence.first.get(EPOCH)
    epoch = epoch_of(known.data) if known is not None else 0
    for commit in history.applied:
        created = any(o.kind == "create" for o in writes_of(commit, "controller"))
        raised = [o for o in writes_of(commit, "epoch") if o.kind == "set"]
        if not created and not raised:
            continue  # Creating /controller_epoch is not an election.
        before, epoch = epoch, epoch_of(raised[0].data) if raised else epoch
        wrong = None
        if not created:
            wrong = "set the epoch without creating /controller"
        elif not raised:
            wrong = "created /controller without raising the epoch"
        elif epoch != before + 1:
            wrong = f"set epoch {epoch} after epoch {before}"
        sentence = f"zxid {commit.zxid}: session {commit.session} {wrong}"
        rows = [zxid_row(commit.zxid)]
        yield violation("W4", commit.zxid, rows, sentence) if wrong else None
