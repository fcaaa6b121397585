"""Writes into the rehearsal's own ZooKeeper: a copy of the znodes, and a rollback's steps.

Nothing here knows the user's ZooKeeper, which is only read (`rehearse.sources`).
"""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator, Iterator
from typing import Any, Final

import orjson

from bridgehead.cluster.errors import ClusterError
from cluster_model.session_state import ConnectionLostError
from cluster_model.znodes.operations import Create, Delete, Operation, SetData
from rehearse.znodes import Znode, ZnodeTree
from zookeeper_client.session import ZooKeeperSession
from zookeeper_client.wire import ZnodeData

_OPEN_TIMEOUT_S: Final = 30.0
_SESSION_TIMEOUT_MS: Final = 30_000
_BATCH_ZNODES: Final = 200
_BATCH_BYTES: Final = 1 << 19  # half of ZooKeeper's default limit for a request
CONTROLLER: Final = "/controller"
MIGRATION: Final = "/migration"
EPOCH: Final = "/controller_epoch"


@contextlib.asynccontextmanager
async def session_to(connect: str) -> AsyncIterator[ZooKeeperSession]:
    """Open a session to the rehearsal's ZooKeeper. Raises ClusterError."""
    session = ZooKeeperSession(
        connect, session_timeout_ms=_SESSION_TIMEOUT_MS, on_state=lambda _state: None
    )
    try:
        await session.open(_OPEN_TIMEOUT_S)
        try:
            yield session
        finally:
            await session.close()
    except ConnectionLostError as lost:
        raise ClusterError(
            f"The rehearsal's ZooKeeper at {connect} does not answer: {lost}."
        ) from lost


async def copy_tree(tree: ZnodeTree, connect: str, *, with_migration: bool) -> int:
    """Create the persistent znodes of a tree in an empty ZooKeeper; return their number.

    `with_migration`: copy `/migration`, too. A znode whose data the source does not have is left
    out: Kafka would take it for a damaged one. The versions of znodes begin at 0 in the copy.

    Raises:
        ClusterError: a znode cannot be created.
    """
    kept = {
        path: znode
        for path, znode in sorted(tree.znodes.items())
        if not znode.ephemeral
        and (znode.hidden is None or znode.data is not None)
        and (with_migration or path != MIGRATION)
    }
    async with session_to(connect) as session:
        for batch in _batches(kept):
            await _apply(session, [Create(path, znode.data) for path, znode in batch.items()])
    return len(kept)


def _batches(znodes: dict[str, Znode]) -> Iterator[dict[str, Znode]]:
    batch: dict[str, Znode] = {}
    size = 0
    for path, znode in znodes.items():
        data = znode.data or b""
        if batch and (len(batch) == _BATCH_ZNODES or size + len(data) > _BATCH_BYTES):
            yield batch
            batch, size = {}, 0
        batch[path] = znode
        size += len(data)
    if batch:
        yield batch


async def _apply(session: ZooKeeperSession, operations: list[Operation]) -> None:
    result = await session.multi([session.encode(operation) for operation in operations])
    if result.failed_index is not None:
        path = operations[result.failed_index].path
        raise ClusterError(f"{path} cannot be written (ZooKeeper error {result.error_code}).")


async def read_znode(connect: str, path: str) -> ZnodeData | None:
    """Return a znode of the rehearsal's ZooKeeper; None if it does not exist."""
    async with session_to(connect) as session:
        if await session.exists(path) is None:
            return None
        return await session.get(path)


async def read_object(connect: str, path: str) -> dict[str, Any] | None:
    """Return the JSON object of a znode, empty if it has none; None if it does not exist."""
    znode = await read_znode(connect, path)
    if znode is None:
        return None
    content = orjson.loads(znode.data or b"{}")
    return content if isinstance(content, dict) else {}


async def write_znodes(connect: str, *operations: Operation) -> None:
    """Apply operations in one multi. Raises ClusterError."""
    async with session_to(connect) as session:
        await _apply(session, list(operations))


async def delete_if_present(connect: str, *paths: str) -> list[str]:
    """Delete znodes; return the paths of those that existed. Raises ClusterError."""
    async with session_to(connect) as session:
        present = [path for path in paths if await session.exists(path) is not None]
        if present:
            await _apply(session, [Delete(path) for path in present])
        return present


async def raise_epoch(connect: str, epoch: int) -> None:
    """Set `/controller_epoch`. Raises ClusterError."""
    await write_znodes(connect, SetData(EPOCH, b"%d" % epoch))
