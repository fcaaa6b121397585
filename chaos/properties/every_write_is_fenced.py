"""W2: every metadata write stands in a multi that checks the controller's epoch, by the controller.

Needs no unlucky timing: one missing check is seen in any run. Kafka itself does not fence creates,
ACLs, quotas and tokens (KAFKA-6082 is this class of bug).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from chaos.history import History
from chaos.verdicts import Finding, Property
from chaos.witness import Transaction

EPOCH: Final = "/controller_epoch"
CONTROLLER: Final = "/controller"
# Persistent parents and names that exist before there is a controller; written once, by anybody.
START_UP: Final = frozenset(
    {
        *("/consumers", "/brokers", "/brokers/ids", "/brokers/topics", "/brokers/seqid"),
        *("/config", "/config/changes", "/config/topics", "/config/clients", "/config/users"),
        *("/config/brokers", "/config/ips", "/admin", "/admin/delete_topics", "/cluster"),
        *("/cluster/id", "/isr_change_notification", "/latest_producer_id_block"),
        *("/log_dir_event_notification", "/bridgehead", "/bridgehead/nodes"),
        *("/bridgehead/outcomes", "/bridgehead/floors", "/bridgehead/commit", EPOCH),
    }
)
REGISTRATION: Final = ("/brokers/ids/", "/bridgehead/nodes/")
WRITES: Final = ("create", "set", "delete", "set_acl")


def _kind(transaction: Transaction) -> str:
    """Say what a transaction is: election, registration, start_up, metadata or nothing."""
    writes = [o for o in transaction.operations if o.kind in WRITES]
    if transaction.failed or transaction.kind == "close_session" or not writes:
        return "nothing"
    paths = [operation.path for operation in writes]
    if CONTROLLER in paths and EPOCH in paths:
        return "election"
    if all(path.startswith(REGISTRATION) for path in paths):
        return "registration"
    if all(o.kind == "create" and o.path in START_UP for o in writes):
        return "start_up"
    if all(not path for path in paths):
        return "nothing"  # outside the chroot
    return "metadata"


def _epoch_versions(transactions: Iterator[Transaction]) -> Iterator[tuple[Transaction, int, int]]:
    """Pair each transaction with the epoch's version in force and the session that holds it."""
    version, holder = -1, 0
    for transaction in transactions:
        yield transaction, version, holder
        if transaction.failed:
            continue
        for operation in transaction.operations:
            if operation.path == EPOCH and operation.kind == "create":
                version = 0
            elif operation.path == EPOCH and operation.kind == "set":
                version, holder = operation.version, transaction.session


def _violation(transaction: Transaction, version: int, holder: int) -> str | None:
    where = f"zxid {transaction.zxid}, session 0x{transaction.session:x}"
    path = next(o.path for o in transaction.operations if o.kind in WRITES)
    checks = [o for o in transaction.operations if o.kind == "check" and o.path == EPOCH]
    if not checks:
        return f"{where} wrote {path} without checking {EPOCH}"
    if any(check.version != version for check in checks):
        return f"{where} wrote {path} checking version {checks[0].version}, {version} is in force"
    if transaction.session != holder:
        return f"{where} wrote {path}; session 0x{holder:x} holds the epoch"
    return None


def check(history: History) -> Finding:
    """Judge every transaction of the log."""
    judged = 0
    violations = []
    for transaction, version, holder in _epoch_versions(iter(history.transactions)):
        if _kind(transaction) != "metadata":
            continue
        judged += 1
        violation = _violation(transaction, version, holder)
        if violation is not None:
            violations.append(violation)
    return Finding(judged, tuple(violations))


PROPERTY: Final = Property(
    "W2",
    "every_write_is_fenced",
    "every metadata write is made by the controller, behind a check of its epoch",
    check,
    argues_from_absence=False,
)
