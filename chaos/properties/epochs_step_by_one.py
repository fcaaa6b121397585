"""W4: each election raises the epoch by one, in the transaction that makes /controller."""

from __future__ import annotations

from typing import Final

from chaos.history import EPOCH, History, epoch_of, writes_of
from chaos.properties.breach import violation, zxid
from chaos.verdicts import Finding, Property


def check(history: History) -> Finding:
    """Judge every applied transaction that makes /controller or sets its epoch."""
    known = history.evidence.first.get(EPOCH)
    epoch = epoch_of(known.data) if known is not None else 0
    judged = 0
    violations = []
    for commit in history.applied:
        made = any(o.kind == "create" for o in writes_of(commit, "controller"))
        raised = [o for o in writes_of(commit, "epoch") if o.kind == "set"]
        if not made and not raised:
            continue  # The first node creates the epoch's znode, as 0.
        judged += 1
        wrong = None
        if not made:
            wrong = "the epoch was set without making /controller"
        elif not raised:
            wrong = "/controller was made without raising the epoch"
        elif epoch_of(raised[0].data) != epoch + 1:
            wrong = f"epoch {epoch} was followed by {raised[0].data}"
        if raised:
            epoch = epoch_of(raised[0].data)
        if wrong:
            sentence = f"zxid {commit.zxid}, session {commit.session}: {wrong}"
            violations.append(violation("W4", commit.zxid, [zxid(commit.zxid)], sentence))
    return Finding(judged, tuple(violations))


PROPERTY: Final = Property("W4", check)
