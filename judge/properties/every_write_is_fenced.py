"""Every metadata write is in a transaction that checks the controller epoch.

ZooKeeper applies a transaction only if its checks pass. A missing check is visible in every run,
whatever the timing of the run. ZooKeeper logs the version that a check found, not the version that
it required. So a check that accepts any version (-1) looks like any other check in ZooKeeper's log;
`controller.store.port.Fence` permits no such check. W2 does not accept a check with version -1, but
only golden histories have one. Kafka itself does not fence creates, ACLs, quotas and tokens
(KAFKA-6082 is a bug of this kind).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from judge.history import EPOCH, History
from judge.property import PropertySpec, Violation, zxid_row

SPEC: Final = PropertySpec(
    id="W2",
    name="every_write_is_fenced",
    statement="every metadata write is in a transaction that checks the controller epoch",
    witnesses=("commits",),
    row="transactions that wrote metadata, except those that W6 allows brokers or a KRaft "
    "controller to make",
    key="<zxid>",
)


def check(history: History) -> Iterator[Violation | None]:
    """Judge every applied transaction that writes metadata."""
    for commit, writes in history.admin_writes:
        checks = [o for o in commit.operations if o.kind == "check" and o.role == "epoch"]
        if any(version_check.version >= 0 for version_check in checks):
            yield None
            continue
        how = f"with a check of {EPOCH} that accepts any version"
        sentence = (
            f"zxid {commit.zxid}: session {commit.session} wrote {writes[0].path} "
            f"{how if checks else f'without checking {EPOCH}'}"
        )
        yield SPEC.violation(commit.zxid, [zxid_row(commit.zxid)], sentence)


INPUTS: Final = ("gold/admin_writes",)
SQL: Final = """
SELECT run, CASE WHEN NOT fenced THEN CAST(zxid AS STRING) END AS key,
  array(concat('zxid/', zxid)) AS rows,
  concat('zxid ', zxid, ': session ', session, ' wrote ', path,
    CASE WHEN checked THEN ' with a check of /controller_epoch that accepts any version'
         ELSE ' without checking /controller_epoch' END) AS sentence
FROM admin_writes
"""
