"""All ACLs out of ZooKeeper in two batches: when a controller loads, when a broker starts."""

from __future__ import annotations

from typing import NamedTuple, cast

from immutables import Map

from bridgehead.authorizer import ResourcePattern
from cluster_model.acl_znodes import UNREADABLE, AclZnode
from cluster_model.acls import AclSet, Entries
from cluster_model.znodes import ZnodeContentError
from zookeeper_client.wire import ReadChildren, ReadData, ReadMany, ZnodeData


class StoredAcls(NamedTuple):
    """What was found. `versions` are the znodes'; `refused` names what could not be understood."""

    acls: AclSet
    versions: Map[ResourcePattern, int]
    refused: tuple[str, ...]


async def read_acls(read: ReadMany) -> StoredAcls:
    """Read every pattern. One that cannot be understood refuses everybody: see UNREADABLE.

    Raises:
        ConnectionLostError: the session broke.
    """
    kinds = tuple(AclZnode.parents())
    found = await read([ReadChildren(path) for _, _, path in kinds])
    patterns = [
        ResourcePattern(resource_type, pattern_type, name)
        for (resource_type, pattern_type, _), names in zip(kinds, found, strict=True)
        for name in sorted(cast(list[str], names or []))
    ]
    znodes = await read([ReadData(AclZnode.path(pattern)) for pattern in patterns])
    rules: dict[ResourcePattern, Entries] = {}
    versions: dict[ResourcePattern, int] = {}
    refused: list[str] = []
    for pattern, znode in zip(patterns, cast(list[ZnodeData | None], znodes), strict=True):
        if znode is None:
            continue  # It went between the two reads.
        versions[pattern] = znode.stat.version
        rules[pattern] = rules_of(pattern, znode.data, refused)
    return StoredAcls(AclSet.of(rules), Map(versions), tuple(refused))


def rules_of(pattern: ResourcePattern, data: bytes | None, refused: list[str]) -> Entries:
    """Return a znode's rules; what cannot be understood is named in `refused`."""
    path = AclZnode.path(pattern)
    try:
        return AclZnode.decode(path, data)
    except ZnodeContentError as wrong:
        refused.append(f"{wrong}; until it is mended, nobody but super users passes it")
        return UNREADABLE
