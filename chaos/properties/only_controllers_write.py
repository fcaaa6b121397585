"""W6: brokers write their own registration, controllers the metadata, strangers nothing.

A broker below the bridge release (inter.broker.protocol.version) may write configs, quotas, ACLs
and tokens itself, through a session that says what it is for; from the bridge on it may not.
"""

from __future__ import annotations

from typing import Final

from chaos.history import History, SessionOwner, may_write_directly, writes_of
from chaos.properties.breach import violation, zxid
from chaos.verdicts import Finding, Property
from event_log.commits import DIRECT_WRITERS, CommitOperation


def _is_granted(operation: CommitOperation, owner: SessionOwner) -> bool:
    if operation.role == "start_up":
        return True  # Whoever comes first makes sure of them.
    if operation.role == "registration":
        name = operation.path.rpartition("/")[2]
        if operation.path.startswith(DIRECT_WRITERS):
            mine = name.partition("-")[0] == owner.node
            return mine and owner.role == "direct" and owner.writes_directly
        return owner.role == "broker" and name == owner.node
    if operation.role == "epoch" and operation.kind == "create":
        return True
    return owner.role == "controller" or may_write_directly(operation, owner)


def check(history: History) -> Finding:
    """Judge every applied transaction that writes below the chroot, ends of sessions left out."""
    judged = 0
    violations = []
    for commit in history.applied:
        writes = writes_of(commit, "epoch", "controller", "registration", "start_up", "admin")
        if not writes or commit.kind == "close_session":
            continue
        judged += 1
        owner = history.sessions.get(commit.session)
        if owner is None:
            wrong, who = writes[0], "a session of no broker"
        else:
            refused = [o for o in writes if not _is_granted(o, owner)]
            if not refused:
                continue
            wrong, who = refused[0], f"broker {owner.node}'s {owner.role} session"
        sentence = f"zxid {commit.zxid}: {who}, {commit.session}, wrote {wrong.path}"
        violations.append(violation("W6", commit.zxid, [zxid(commit.zxid)], sentence))
    return Finding(judged, tuple(violations))


PROPERTY: Final = Property("W6", check)
