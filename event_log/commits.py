"""What ZooKeeper did, as lines of JSON: one transaction a line, in the order of their zxids.

chaos.witness decodes the transaction logs of all members; what a majority holds is written in
this form, and both judges read it. Transactions that touch only what lies outside the chroot are
lines without operations, so that zxids stay without a hole. Formats alone: no I/O.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

# What a path is for; `role` of an operation is one of these.
ROLES: Final = {
    "epoch": "/controller_epoch",
    "controller": "/controller",
    "registration": "below /brokers/ids, /bridgehead/nodes or /bridgehead/direct: ephemeral, a "
    "broker's own",
    "start_up": "persistent parents, /cluster/id and /bridgehead/commit, when they are created",
    "admin": "everything else below the chroot: only the controller may write it, and brokers "
    "below the bridge release what stands below DIRECT",
}
DIRECT_WRITERS: Final = "/bridgehead/direct/"
REGISTRATIONS: Final = ("/brokers/ids/", "/bridgehead/nodes/", DIRECT_WRITERS)
# What brokers wrote themselves before they forwarded: configs, quotas, ACLs, delegation tokens.
DIRECT: Final = ("/config/", "/kafka-acl", "/delegation_token/")
_ACL_TYPES: Final = ("Cluster", "DelegationToken", "Group", "Topic", "TransactionalId", "User")
# Names that exist before there is a controller; creating one of them is no metadata write.
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
# The content of these may be a secret: it is neither written into a line nor into a dump.
SECRET: Final = ("/config/users", "/config/brokers", "/delegation_token")
WRITES: Final = ("create", "set", "delete", "set_acl")


@dataclass(frozen=True, slots=True, kw_only=True)
class CommitOperation:
    """One thing that a transaction did to one path below the chroot."""

    kind: str  # create, set, delete, set_acl, check; error in a refused multi; other
    path: str = ""  # without the chroot
    role: str = ""  # one of ROLES; "" where there is no path
    version: int = -1  # what a check demanded (-1: any), what a set resulted in, 0 for a create
    ephemeral: bool = False
    error: int = 0
    data: str | None = None  # the content as text; None: not UTF-8, or perhaps a secret
    digest: str | None = None  # of the content: the first 16 hexadecimal digits of its SHA-256


@dataclass(frozen=True, slots=True, kw_only=True)
class CommitOutcome:
    """One element of one request, as an outcome znode of this transaction says it ended."""

    broker_id: int
    incarnation: str
    sequence: int
    request_id: str
    element: str
    error: int


@dataclass(frozen=True, slots=True, kw_only=True)
class CommitLine:
    """One transaction. `failed`: a refused multi, which changed nothing."""

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
    """Return what an operation of this kind on this path is."""
    if path == "/controller_epoch":
        return "epoch"
    if path == "/controller":
        return "controller"
    if path.startswith(REGISTRATIONS):
        return "registration"
    if kind == "create" and path in START_UP:
        return "start_up"
    return "admin" if path else ""


def is_secret(path: str) -> bool:
    """True when the znode's content stays out of every line."""
    return path.startswith(SECRET)
