"""W2: every metadata write stands in a transaction that checks the controller's epoch.

A check that was applied demanded the version then in force, unless it demanded any (-1). Needs no
unlucky timing: one missing check is seen in any run. Kafka itself does not fence creates, ACLs,
quotas and tokens (KAFKA-6082 is this class of bug).
"""

from __future__ import annotations

from typing import Final

from chaos.history import EPOCH, History
from chaos.properties.breach import violation, zxid
from chaos.verdicts import Finding, Property


def check(history: History) -> Finding:
    """Judge every applied transaction that writes metadata."""
    judged = 0
    violations = []
    for commit, writes in history.admin_writes:
        judged += 1
        checks = [o for o in commit.operations if o.kind == "check" and o.role == "epoch"]
        if any(check.version >= 0 for check in checks):
            continue
        how = "demanding no version of" if checks else "without checking"
        sentence = (
            f"zxid {commit.zxid}: session {commit.session} wrote {writes[0].path} {how} {EPOCH}"
        )
        violations.append(violation("W2", commit.zxid, [zxid(commit.zxid)], sentence))
    return Finding(judged, tuple(violations))


PROPERTY: Final = Property("W2", check)
