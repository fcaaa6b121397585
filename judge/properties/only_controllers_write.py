"""W6: controllers write metadata, brokers write their registration, others write nothing.

A broker below the bridge release (inter.broker.protocol.version) may write configs, quotas, ACLs
and tokens through a session of role `direct`. Other brokers may not. As an exception, any session
of a node may create /controller_epoch and the paths that a cluster needs at its start (role
`start_up`).
"""

from __future__ import annotations

from collections.abc import Iterator

from event_log.commits import DIRECT_WRITERS, CommitOperation
from event_log.properties import Violation
from judge.history import History, SessionOwner, may_write_directly, writes_of
from judge.properties.violations import violation, zxid_row


def _is_allowed(operation: CommitOperation, owner: SessionOwner) -> bool:
    if operation.role == "start_up":
        return True
    if operation.role == "registration":
        name = operation.path.rpartition("/")[2]
        if operation.path.startswith(DIRECT_WRITERS):
            own = name.partition("-")[0] == owner.node
            return own and owner.role == "direct" and owner.writes_directly
        return owner.role == "broker" and name == owner.node
    if operation.role == "epoch" and operation.kind == "create":
        return True
    return owner.role == "controller" or may_write_directly(operation, owner)


def check(history: History) -> Iterator[Violation | None]:
    """Judge every applied transaction that writes below the chroot and does not end a session."""
    for commit in history.applied:
        writes = writes_of(commit, "epoch", "controller", "registration", "start_up", "admin")
        if not writes or commit.kind == "close_session":
            continue
        owner = history.sessions.get(commit.session)
        wrong = [o for o in writes if owner is None or not _is_allowed(o, owner)]
        if not wrong:
            yield None
            continue
        of = f"broker {owner.node}, role {owner.role}," if owner else "no known broker"
        sentence = f"zxid {commit.zxid}: session {commit.session} of {of} wrote {wrong[0].path}"
        yield violation("W6", commit.zxid, [zxid_row(commit.zxid)], sentence)
