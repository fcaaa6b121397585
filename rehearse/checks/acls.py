"""Checks of ACLs."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final, NamedTuple

from cluster_model.znodes.acls import AclZnode
from rehearse.cluster import Cluster, ShapeError, UnreadableError, integer, object_in, string
from rehearse.findings import Evidence, Outcome, Place, Rule

_LITERAL: Final = "/kafka-acl"
_EXTENDED: Final = "/kafka-acl-extended"
_PREFIXED: Final = "/kafka-acl-extended/prefixed"
_PARENTS: Final = frozenset(parent for _, _, parent in AclZnode.parents())
_OPERATIONS: Final = frozenset(
    "Read Write Create Delete Alter Describe ClusterAction DescribeConfigs AlterConfigs "
    "IdempotentWrite CreateTokens DescribeTokens All".upper().split()
)
_PERMISSIONS: Final = frozenset({"ALLOW", "DENY"})
_PRINCIPAL: Final = "a principal has no type"


class _Acls(NamedTuple):
    """The ACLs of a resource; `problem` is why the content is not read."""

    path: str
    entries: tuple[Any, ...]
    problem: UnreadableError | ShapeError | None


def _acls(cluster: Cluster) -> Iterator[_Acls]:
    for parent in _PARENTS:
        for _, path, znode in cluster.children(parent):
            if not znode.data:
                yield _Acls(path, (), UnreadableError("it has no data"))
                continue
            try:
                content = object_in(znode.data)
                if integer(content.get("version")) != 1:
                    raise ShapeError("its version is not 1")
                entries = content.get("acls")
                if not isinstance(entries, list):
                    raise ShapeError("acls is not a JSON array")
                yield _Acls(path, tuple(map(_entry, entries)), None)
            except (UnreadableError, ShapeError) as error:
                yield _Acls(path, (), error)


class _Entry(NamedTuple):
    principal: str
    operation: str
    permission: str


def _entry(value: Any) -> _Entry:
    if not isinstance(value, dict):
        raise ShapeError("an ACL is not a JSON object")
    string(value.get("host"))
    operation, permission = (
        string(value.get(key)).upper() for key in ("operation", "permissionType")
    )
    if "ANY" in (operation, permission):
        raise ShapeError("an ACL has the operation or permission Any")
    principal = string(value.get("principal"))
    if ":" not in principal:
        raise ShapeError(_PRINCIPAL)
    return _Entry(principal, operation, permission)


def _unreadable(cluster: Cluster) -> Iterator[Place]:
    for acls in _acls(cluster):
        if isinstance(acls.problem, UnreadableError) or (not acls.problem and not acls.entries):
            yield Place(acls.path, str(acls.problem or "it has no ACLs"))


def _wrong_shapes(cluster: Cluster) -> Iterator[Place]:
    for acls in _acls(cluster):
        if isinstance(acls.problem, ShapeError) and str(acls.problem) != _PRINCIPAL:
            yield Place(acls.path, str(acls.problem))


def _principals(cluster: Cluster) -> Iterator[Place]:
    for acls in _acls(cluster):
        if isinstance(acls.problem, ShapeError) and str(acls.problem) == _PRINCIPAL:
            yield Place(acls.path)


def _unknown_words(cluster: Cluster) -> Iterator[Place]:
    for acls in _acls(cluster):
        words = [
            *(entry.operation for entry in acls.entries if entry.operation not in _OPERATIONS),
            *(entry.permission for entry in acls.entries if entry.permission not in _PERMISSIONS),
        ]
        if words:
            yield Place(acls.path, words[0][:50])


def _unknown_types(cluster: Cluster) -> Iterator[Place]:
    for parent in (_LITERAL, _PREFIXED):
        for name in cluster.tree.children(parent):
            path = f"{parent}/{name}"
            if path not in _PARENTS and cluster.tree.children(path):
                yield Place(path)


def _unknown_patterns(cluster: Cluster) -> Iterator[Place]:
    for name in cluster.tree.children(_EXTENDED):
        if f"{_EXTENDED}/{name}" != _PREFIXED and cluster.tree.children(f"{_EXTENDED}/{name}"):
            yield Place(f"{_EXTENDED}/{name}")


RULES: Final = (
    Rule(
        id="acl-unreadable",
        what="The ACLs of a resource are empty or cannot be read.",
        outcome=Outcome.DELETED,
        effect="The resource has no ACLs in KRaft, and its znode is deleted. A DENY is lost, too.",
        log="DeleteAcl=",
        remedy="Create the ACLs again with kafka-acls, or delete {where}.",
        find=_unreadable,
        evidence=Evidence.LIVE,
    ),
    Rule(
        id="acl-odd",
        what="The ACLs of a resource have an unexpected version or content.",
        outcome=Outcome.DIES,
        effect="The controller process ends after it has taken /controller.",
        log="Aborting the metadata migration from ZooKeeper to KRaft",
        remedy="Repair {where}, or delete it and create its ACLs again with kafka-acls.",
        find=_wrong_shapes,
        evidence=Evidence.LIVE,
    ),
    Rule(
        id="acl-principal",
        what="The principal of an ACL has no type.",
        outcome=Outcome.DIES,
        effect="The controller process ends after it has taken /controller.",
        log="expected a string in format principalType:principalName",
        remedy="Write User: before the name in {where}.",
        find=_principals,
        evidence=Evidence.LIVE,
    ),
    Rule(
        id="acl-word-unknown",
        what="An ACL has an operation or a permission that Kafka does not know.",
        outcome=Outcome.CHANGED,
        effect="It is stored as UNKNOWN.",
        log="",
        remedy="Create the ACL again with kafka-acls, and delete the odd one.",
        find=_unknown_words,
        evidence=Evidence.LIVE,
    ),
    Rule(
        id="acl-type-unknown",
        what="There are ACLs of a resource type that Kafka does not know.",
        outcome=Outcome.LOST,
        effect="The ACLs are not read, and stay in ZooKeeper.",
        log="Ignoring unknown ResourceType",
        remedy="Create the ACLs for the right type with kafka-acls; delete {where}.",
        find=_unknown_types,
        evidence=Evidence.LIVE,
    ),
    Rule(
        id="acl-pattern-unknown",
        what="There are ACLs of an unknown pattern type.",
        outcome=Outcome.LOST,
        effect="The ACLs are not read, and stay in ZooKeeper. Nothing is logged.",
        log="",
        remedy="Create the ACLs with kafka-acls; delete {where}.",
        find=_unknown_patterns,
        evidence=Evidence.LIVE,
    ),
)
