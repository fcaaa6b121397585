"""Purges change notifications after 15 minutes; by then every connected broker has read them.

In Kafka every broker purges them (docs/kafka/znodes.md#change-notifications); here only the
controller may write.
"""

from __future__ import annotations

import contextlib
from collections.abc import Mapping, Sequence
from typing import Final, cast

from cluster_model.session_state import ConnectionLostError
from cluster_model.znodes.acls import AclChangeZnode
from cluster_model.znodes.layout import ConfigChangeZnode
from cluster_model.znodes.operations import Delete
from cluster_model.znodes.tokens import TokenChangeZnode
from controller.loop.loop import OPERATIONS_PER_MULTI, ControllerLoop
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
    """Delete expired notifications, in fenced multis. Raises ConnectionLostError.

    Each action of the loop reads the oldest notifications, as many as one multi can delete, and
    deletes those that have expired. If all of them have expired, another action reads the next.
    """
    for parent in NOTIFICATION_PARENTS:
        (children,) = await read([ReadChildren(parent)])
        names = sorted(cast(Sequence[str], children or ()))
        await _purge([f"{parent}/{name}" for name in names], read, loop, now_ms)


async def _purge(paths: Sequence[str], read: ReadMany, loop: ControllerLoop, now_ms: int) -> None:
    oldest, newer = paths[:OPERATIONS_PER_MULTI], paths[OPERATIONS_PER_MULTI:]
    if not oldest:
        return
    znodes = cast(list[ZnodeData | None], await read([ReadData(path) for path in oldest]))
    gone = expired(dict(zip(oldest, znodes, strict=True)), now_ms)
    if gone:
        await loop.commit_operations([Delete(path) for path in gone])
    if len(gone) == len(oldest) and newer:

        async def go_on() -> None:
            with contextlib.suppress(ConnectionLostError):  # The next purge tries again.
                await _purge(newer, read, loop, now_ms)

        loop.schedule(go_on)
