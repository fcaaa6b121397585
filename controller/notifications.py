"""Purges change notifications after 15 minutes; by then every connected broker has read them.

In Kafka every broker purges them (docs/kafka/znodes.md#change-notifications); here only the
controller may write.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, cast

from cluster_model.acl_znodes import AclChangeZnode
from cluster_model.token_znodes import TokenChangeZnode
from cluster_model.znode_operations import Delete
from cluster_model.znodes import ConfigChangeZnode
from controller.loop import OPERATIONS_PER_MULTI, ControllerLoop
from zookeeper_client.wire import ReadChildren, ReadData, ReadMany, ZnodeData

NOTIFICATION_PARENTS: Final = (
    ConfigChangeZnode.parent,
    TokenChangeZnode.parent,
    *AclChangeZnode.parents,
)
EXPIRE_AFTER_MS: Final = 15 * 60 * 1000


def expired(znodes: Mapping[str, ZnodeData | None], now_ms: int) -> list[str]:
    """Return the paths of the notifications created more than 15 minutes ago."""
    return [
        path
        for path, znode in sorted(znodes.items())
        if znode is not None and now_ms - znode.stat.ctime > EXPIRE_AFTER_MS
    ]


async def purge_notifications(read: ReadMany, loop: ControllerLoop, now_ms: int) -> None:
    """Delete expired notifications, in fenced multis. Raises ConnectionLostError."""
    for parent in NOTIFICATION_PARENTS:
        await _purge(parent, read, loop, now_ms)


async def _purge(parent: str, read: ReadMany, loop: ControllerLoop, now_ms: int) -> None:
    (children,) = await read([ReadChildren(parent)])
    oldest = sorted(cast(Sequence[str], children or ()))[:OPERATIONS_PER_MULTI]
    paths = [f"{parent}/{name}" for name in oldest]
    if not paths:
        return
    found = cast(list[ZnodeData | None], await read([ReadData(path) for path in paths]))
    gone = expired(dict(zip(paths, found, strict=True)), now_ms)
    if gone:
        await loop.commit_operations([Delete(path) for path in gone])
