"""W5: /controller is deleted only by its owner.

It is deleted when the owner's session ends, or in a transaction that checks the epoch.
KAFKA-6082: after an error, a controller without this check deletes the znode of its successor.
"""

from __future__ import annotations

from collections.abc import Iterator

from event_log.properties import Violation
from judge.history import CONTROLLER, History, writes_of
from judge.properties.violations import violation, zxid_row


def check(history: History) -> Iterator[Violation | None]:
    """Judge every applied creation and deletion of /controller."""
    first = history.evidence.first.get(CONTROLLER)
    owner = first.ephemeral_owner if first is not None else None
    since = first.czxid if first is not None else 0
    for commit in history.applied:
        for operation in writes_of(commit, "controller"):
            if operation.kind == "create":
                owner, since = commit.session, commit.zxid
                yield None
            elif operation.kind == "delete":
                checked = any(
                    o.kind == "check" and o.role == "epoch" and o.version >= 0
                    for o in commit.operations
                )
                by_owner = commit.session == owner
                if by_owner and (commit.kind == "close_session" or checked):
                    yield None
                    continue
                how = " without checking the epoch"
                if not by_owner:
                    how = f", which belongs to {f'session {owner}' if owner else 'no session'}"
                sentence = f"zxid {commit.zxid}: session {commit.session} deleted {CONTROLLER}{how}"
                rows = [zxid_row(commit.zxid), zxid_row(since)]
                yield violation("W5", commit.zxid, rows, sentence)
