"""Reads ACLs from ZooKeeper, for controllers and brokers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, cast

from immutables import Map

from bridgehead.authorizer import ResourcePattern
from cluster_model.acls.bindings import AclSet, Entries
from cluster_model.znodes.acls import UNREADABLE, AclZnode
from cluster_model.znodes.layout import ZnodeContentError
from zookeeper_client.wire import ReadChildren, ReadData, ReadMany, ZnodeData


class StoredAcls(NamedTuple):
    """All ACLs, the versions of their znodes, and the errors of invalid znodes."""

    acls: AclSet
    versions: Map[ResourcePattern, int]
    invalid: tuple[str, ...]


class StoredRules(NamedTuple):
    """The ACLs of one pattern, and the version of its znode (None if the znode is missing)."""

    entries: Entries
    version: int | None


async def read_acls(read: ReadMany) -> StoredAcls:
    """Read the ACLs of every pattern. Raises ConnectionLostError."""
    kinds = tuple(AclZnode.parents())
    names_of_kinds = await read([ReadChildren(path) for _, _, path in kinds])
    patterns = [
        ResourcePattern(resource_type, pattern_type, name)
        for (resource_type, pattern_type, _), names in zip(kinds, names_of_kinds, strict=True)
        for name in sorted(cast(list[str], names or []))
    ]
    rules, invalid = await read_some_acls(read, patterns)
    versions = {
        p: listed_rule.version
        for p, listed_rule in rules.items()
        if listed_rule.version is not None
    }
    acls = AclSet.of({pattern: rules[pattern].entries for pattern in versions})
    return StoredAcls(acls, Map(versions), invalid)


async def read_some_acls(
    read: ReadMany, patterns: Sequence[ResourcePattern]
) -> tuple[dict[ResourcePattern, StoredRules], tuple[str, ...]]:
    """Return the ACLs of each pattern, and the errors of invalid znodes.

    For an invalid znode, the ACLs are UNREADABLE: everything is denied, except to super users.

    Raises:
        ConnectionLostError: the connection broke.
    """
    znodes = await read([ReadData(AclZnode.path(pattern)) for pattern in patterns])
    rules: dict[ResourcePattern, StoredRules] = {}
    invalid: list[str] = []
    for pattern, znode in zip(patterns, cast(list[ZnodeData | None], znodes), strict=True):
        if znode is None:
            rules[pattern] = StoredRules((), None)
            continue
        entries = UNREADABLE
        try:
            entries = AclZnode.decode(AclZnode.path(pattern), znode.data)
        except ZnodeContentError as wrong:
            invalid.append(f"{wrong}; until this znode is repaired, only super users have access")
        rules[pattern] = StoredRules(entries, znode.version)
    return rules, tuple(invalid)
