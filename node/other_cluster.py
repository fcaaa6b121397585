"""`python -m node.other_cluster look CONNECT`, or `copy CONNECT TARGET`.

`look` prints what a ZooKeeper already has, as JSON: the cluster id (null if there is none), the
registered brokers and the number of topics. `copy` only reads CONNECT: it creates the znodes in
TARGET, which must be empty. Ephemeral znodes belong to sessions and are not copied, nor are our
own, `/bridgehead`. Exit code: 0, or 2 with one sentence on standard error.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import sys
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from typing import Any, Final, cast

from cluster_model.session_state import ConnectionLostError, ZooKeeperRejectedError
from cluster_model.znodes.access import ZooKeeperAccess
from cluster_model.znodes.operations import Create
from node.znode_dump import DumpError, read_access
from zookeeper_client.session import ZooKeeperSession
from zookeeper_client.wire import ReadChildren, ReadData, ZnodeData

_OPEN_TIMEOUT_S: Final = 10.0
_SESSION_TIMEOUT_MS: Final = 10_000
_NOT_COPIED: Final = ("/zookeeper", "/bridgehead")
_BATCH_ZNODES: Final = 200
_BATCH_BYTES: Final = 1 << 19  # half of ZooKeeper's default limit for a request


def main(arguments: Sequence[str] | None = None) -> int:
    """Print what a ZooKeeper has, or copy it; return the exit code."""
    parser = argparse.ArgumentParser(prog="other_cluster", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("look").add_argument("connect")
    copying = commands.add_parser("copy")
    copying.add_argument("connect")
    copying.add_argument("target")
    options = parser.parse_args(arguments)
    try:
        # The properties contain a credential: standard input keeps it out of the process list.
        access = read_access(json.loads(sys.stdin.readline() or "{}"))
        if options.command == "look":
            result = asyncio.run(look(options.connect, access))
        else:
            result = asyncio.run(copy(options.connect, options.target, access))
    except (DumpError, ConnectionLostError, ZooKeeperRejectedError, ValueError) as error:
        sys.stderr.write(f"{options.connect}: {error}\n")
        return 2
    sys.stdout.write(json.dumps(result) + "\n")
    return 0


@contextlib.asynccontextmanager
async def _session(connect: str, access: ZooKeeperAccess) -> AsyncIterator[ZooKeeperSession]:
    session = ZooKeeperSession(
        connect,
        session_timeout_ms=_SESSION_TIMEOUT_MS,
        on_state=lambda _state: None,
        access=access,
    )
    await session.open(_OPEN_TIMEOUT_S)
    try:
        yield session
    finally:
        await session.close()


async def look(connect: str, access: ZooKeeperAccess) -> dict[str, Any]:
    """Return the cluster id, the registered brokers and the number of topics."""
    async with _session(connect, access) as session:
        cluster_id = None
        if await session.exists("/cluster/id") is not None:
            cluster_id = _cluster_id((await session.get("/cluster/id")).data)
        return {
            "cluster_id": cluster_id,
            "brokers": sorted(await _names(session, "/brokers/ids")),
            "topics": len(await _names(session, "/brokers/topics")),
        }


def _cluster_id(data: bytes | None) -> str:
    """Return the id in `/cluster/id`; contents in another form are returned as text."""
    text = (data or b"").decode("utf-8", "replace")
    with contextlib.suppress(ValueError):
        document = json.loads(text)
        if isinstance(document, dict) and isinstance(document.get("id"), str):
            return str(document["id"])
    return text


async def _names(session: ZooKeeperSession, path: str) -> list[str]:
    return await session.children(path) if await session.exists(path) is not None else []


async def copy(connect: str, target: str, access: ZooKeeperAccess) -> dict[str, Any]:
    """Copy the persistent znodes; return their number.

    Raises:
        DumpError: the source has no cluster, or TARGET is not empty.
    """
    hosts, slash, chroot = connect.partition("/")
    async with _session(hosts, access) as source:
        if await source.exists(f"{slash}{chroot}/cluster/id") is None:
            raise DumpError("There is no /cluster/id: this is not a Kafka cluster's ZooKeeper.")
        znodes = await _persistent(source, slash + chroot)
    async with _session(target, ZooKeeperAccess()) as session:
        for batch in _batches(znodes):
            operations = [session.encode(Create(path, data)) for path, data in batch.items()]
            result = await session.multi(operations)
            if result.failed_index is not None:
                path = list(batch)[result.failed_index]
                raise DumpError(f"{path} cannot be created (ZooKeeper error {result.error_code}).")
    return {"znodes": len(znodes)}


async def _persistent(session: ZooKeeperSession, chroot: str) -> dict[str, bytes | None]:
    """Return the data of the persistent znodes by path, parents before children."""
    znodes: dict[str, bytes | None] = {}
    parents = [""]
    while parents:
        lists = await session.read([ReadChildren(chroot + parent or "/") for parent in parents])
        paths = sorted(
            path
            for parent, children in zip(parents, lists, strict=True)
            for child in cast(Sequence[str], children or ())
            if (path := f"{parent}/{child}") not in _NOT_COPIED
        )
        results = await session.read([ReadData(chroot + path) for path in paths])
        for path, znode in zip(paths, results, strict=True):
            if znode is not None and not cast(ZnodeData, znode).stat.ephemeral_owner:
                znodes[path] = cast(ZnodeData, znode).data
        parents = [path for path in paths if path in znodes]
    return znodes


def _batches(znodes: Mapping[str, bytes | None]) -> Iterator[dict[str, bytes | None]]:
    batch: dict[str, bytes | None] = {}
    size = 0
    for path, data in znodes.items():
        if batch and (len(batch) == _BATCH_ZNODES or size + len(data or b"") > _BATCH_BYTES):
            yield batch
            batch, size = {}, 0
        batch[path] = data
        size += len(data or b"")
    if batch:
        yield batch


if __name__ == "__main__":
    sys.exit(main())
