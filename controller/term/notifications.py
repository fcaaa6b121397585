"""Purges change notifications after 15 minutes; by then every connected broker has read them.

In Kafka every broker purges them (docs/kafka/znodes.md#change-notifications); here only the
controller may write.
"""

from __future__ import annotations

import contextlib
from collections.abc import Mapping, Sequence
from typing import Final, cast

from cluster_model.session_state import ConnectionLostError
from cluster_model.znodes.layout import notification_number
from cluster_model.znodes.operations import Delete
from controller.loop.loop import OPERATIONS_PER_MULTI, ControllerLoop
from controller.store.load import NOTIFICATION_PREFIXES
from controller.term.deletions import Deletions
from zookeeper_client.wire import ReadChildren, ReadData, ReadMany, ZnodeData

EXPIRE_AFTER_MS: Final = 15 * 60 * 1000


def expired(znodes: Mapping[str, ZnodeData | None], now_ms: int) -> list[str]:
    """Return the paths of the notifications created more than 15 minutes ago."""
    return [
        path
        for path, znode in sorted(znodes.items())
        if znode is not None and now_ms - znode.stat.ctime > EXPIRE_AFTER_MS
    ]


async def purge_notifications(
    read: ReadMany, loop: ControllerLoop, now_ms: int, deletions: Deletions
) -> None:
    """Delete expired notifications, in fenced multis. Raises ConnectionLostError.

    Each action of the loop reads the oldest notifications, as many as one multi can delete, and
    deletes those that have expired. If all of them have expired, another action reads the next.
    """
    for prefix in NOTIFICATION_PREFIXES:
        parent, _, word = prefix.rpartition("/")
        (children,) = await read([ReadChildren(parent)])
        numbers = {
            name: notification_number(name, word) for name in cast(list[str], children or ())
        }
        ours = sorted((n, name) for name, n in numbers.items() if n is not None)
        await _purge([f"{parent}/{name}" for _, name in ours], read, loop, now_ms, deletions)


async def _purge(
    paths: Sequence[str], read: ReadMany, loop: ControllerLoop, now_ms: int, deletions: Deletions
) -> None:
    oldest, newer = paths[:OPERATIONS_PER_MULTI], paths[OPERATIONS_PER_MULTI:]
    if not oldest:
        return
    znodes = cast(list[ZnodeData | None], await read([ReadData(path) for path in oldest]))
    gone = expired(dict(zip(oldest, znodes, strict=True)), now_ms)
    if gone and not await deletions.commit(loop, [Delete(path) for path in gone]):
        return  # The next purge tries again.
    if len(gone) == len(oldest) and newer:

        async def go_on() -> None:
            with contextlib.suppress(ConnectionLostError):  # The next purge tries again.
                await _purge(newer, read, loop, now_ms, deletions)

        loop.schedule(go_on)
