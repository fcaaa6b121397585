"""ZooKeeper's transactions as JSON lines, one per transaction, ordered by zxid. No I/O.

`judge.evidence.sealing` decodes and merges the transaction logs of all members. The judge and the
pipeline read the resulting lines. A transaction outside the chroot is a line without operations, so
that zxids have no gaps.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from typing import Final

# The roles of an operation, by its path.
ROLES: Final = {
    "epoch": "/controller_epoch",
    "controller": "/controller",
    "registration": "below /brokers/ids, /bridgehead/nodes or /bridgehead/direct: the ephemeral "
    "znodes of a broker",
    "start_up": "creation of the persistent parent znodes, /cluster/id and /bridgehead/commit",
    "migration": "/migration: the progress of a KRaft controller; no node writes it",
    "admin": "everything else under the chroot; only the controller writes it, except that brokers "
    "below the bridge release also write the paths in DIRECT, and create the znodes of topics",
}
DIRECT_WRITERS: Final = "/bridgehead/direct/"
REGISTRATIONS: Final = ("/brokers/ids/", "/bridgehead/nodes/", DIRECT_WRITERS)
# Paths that brokers below the bridge release write: configs, quotas, ACLs and delegation tokens.
DIRECT: Final = ("/config/", "/kafka-acl", "/delegation_token/")
TOKENS: Final = "/delegation_token/tokens/"  # followed by the id of a token
_ACL_TYPES: Final = ("Cluster", "DelegationToken", "Group", "Topic", "TransactionalId", "User")
# Znodes that are created before there is a controller. Their creation is not a metadata write.
START_UP: Final = frozenset(
    {
        *("/consumers", "/brokers", "/brokers/ids", "/brokers/topics", "/brokers/seqid"),
        *("/config", "/config/changes", "/config/topics", "/config/clients", "/config/users"),
        *("/config/brokers", "/config/ips", "/admin", "/admin/delete_topics", "/cluster"),
        *("/cluster/id", "/isr_change_notification", "/latest_producer_id_block"),
        *("/log_dir_event_notification", "/bridgehead", "/bridgehead/nodes", "/bridgehead/direct"),
        *("/bridgehead/outcomes", "/bridgehead/floors", "/bridgehead/commit"),
        *("/delegation_token", "/delegation_token/tokens", "/delegation_token/token_changes"),
        *("/kafka-acl", "/kafka-acl-changes", "/kafka-acl-extended"),
        *("/kafka-acl-extended-changes", "/kafka-acl-extended/prefixed"),
        *(f"/kafka-acl/{name}" for name in _ACL_TYPES),
        *(f"/kafka-acl-extended/prefixed/{name}" for name in _ACL_TYPES),
    }
)
# Znodes whose content can be secret. It is omitted from commit lines and dumps.
SECRET: Final = ("/config/users", "/config/brokers", "/delegation_token")
WRITES: Final = ("create", "set", "delete", "set_acl")


@dataclass(frozen=True, slots=True, kw_only=True)
class CommitOperation:
    """One operation of a transaction on a path below the chroot."""

    kind: str  # create, set, delete, set_acl, check or other; error if the multi failed
    path: str = ""  # without the chroot
    role: str = ""  # one of ROLES; "" without a path
    version: int = -1  # found by a check, or produced by a set; 0 for a create
    ephemeral: bool = False
    error: int = 0
    data: str | None = None  # the content as text; None: not UTF-8, or possibly secret
    digest: str | None = None  # of the content: the first 16 hexadecimal digits of its SHA-256


@dataclass(frozen=True, slots=True, kw_only=True)
class CommitOutcome:
    """The outcome of one element of a request, from an outcome znode of this transaction."""

    broker_id: int
    incarnation: str
    sequence: int
    request_id: str
    element: str
    error: int


@dataclass(frozen=True, slots=True, kw_only=True)
class CommitLine:
    """One transaction. `failed`: a multi that failed and changed nothing."""

    zxid: int
    session: str  # 0x… as in session_opened
    time_ms: int
    kind: str  # multi, create, delete, set, set_acl, create_session, close_session, error, other
    failed: bool = False
    operations: list[CommitOperation] = field(default_factory=list)
    outcomes: list[CommitOutcome] = field(default_factory=list)


@dataclass(frozen=True, slots=True, kw_only=True)
class DumpLine:
    """One znode below the chroot, in first.jsonl and final.jsonl, sorted by path."""

    path: str
    czxid: int
    mzxid: int
    version: int
    ephemeral_owner: str | None  # 0x…
    digest: str
    data: str | None = None


def role_of(kind: str, path: str) -> str:
    """Return the role of an operation of this kind on this path."""
    if path == "/controller_epoch":
        return "epoch"
    if path == "/controller":
        return "controller"
    if path == "/migration":
        return "migration"
    if path.startswith(REGISTRATIONS):
        return "registration"
    if kind == "create" and path in START_UP:
        return "start_up"
    return "admin" if path else ""


def is_secret(path: str) -> bool:
    """Return whether the content of the znode can be secret."""
    return path.startswith(SECRET)


def content_digest(data: bytes | None) -> str:
    """Return the digest of a znode's content: the first 16 hexadecimal digits of its SHA-256."""
    return hashlib.sha256(data or b"").hexdigest()[:16]


def content_text(path: str, data: bytes | None) -> str | None:
    """Return the content of a znode as text; None for secret paths and for invalid UTF-8."""
    if is_secret(path):
        return None
    try:
        return (data or b"").decode()
    except UnicodeDecodeError:
        return None
