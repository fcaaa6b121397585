"""W5: /controller goes with its owner's session, or by its owner's own checked delete.

The second half of KAFKA-6082: a controller that deletes /controller without a check, after an
error of its own, deletes its successor's.
"""

from __future__ import annotations

from typing import Final

from chaos.history import CONTROLLER, History, writes_of
from chaos.properties.breach import violation, zxid
from chaos.verdicts import Finding, Property


def check(history: History) -> Finding:
    """Judge every applied creation and deletion of /controller."""
    first = history.evidence.first.get(CONTROLLER)
    owner = first.ephemeral_owner if first is not None else None
    since = first.czxid if first is not None else 0
    judged = 0
    violations = []
    for commit in history.applied:
        for operation in writes_of(commit, "controller"):
            if operation.kind == "create":
                judged += 1
                owner, since = commit.session, commit.zxid
            elif operation.kind == "delete":
                judged += 1
                checked = any(o.kind == "check" and o.role == "epoch" for o in commit.operations)
                by_owner = commit.session == owner
                if by_owner and (commit.kind == "close_session" or checked):
                    continue
                how = "without checking the epoch" if by_owner else f"which is session {owner}'s"
                sentence = (
                    f"zxid {commit.zxid}: session {commit.session} deleted {CONTROLLER}, {how}"
                )
                rows = [zxid(commit.zxid), zxid(since)]
                violations.append(violation("W5", commit.zxid, rows, sentence))
    return Finding(judged, tuple(violations))


PROPERTY: Final = Property("W5", check)
