"""`python -m node.znode_dump CONNECT RUN NAME`: dump all znodes below a chroot.

The dump is a snapshot at one zxid: all znodes are read, at most ten times, until no write happens
during a read. If a write happens during each of the ten reads, there is no dump, and properties
that need the dump are NODATA.
Exit code: 0, or 2 if there is no dump.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final, cast

import orjson

from broker_proxy.authentication.sasl_server import SecurityConfigError
from cluster_model.configs.broker_configs import BrokerConfig
from cluster_model.session_state import ConnectionLostError
from cluster_model.znodes.access import OPEN_ACCESS, Credential, ZooKeeperAccess
from event_log.commits import DumpLine, content_digest, content_text
from event_log.evidence import DUMPS
from node.zookeeper_tls import build_zookeeper_tls, read_zookeeper_tls
from zookeeper_client.session import ZooKeeperSession
from zookeeper_client.wire import ReadChildren, ReadData, ZnodeData

_OPEN_TIMEOUT_S: Final = 10.0
_SESSION_TIMEOUT_MS: Final = 10_000
_ATTEMPTS_MAX: Final = 10
_PAUSE_S: Final = 0.2
_NOT_OURS: Final = "/zookeeper"


class DumpError(Exception):
    """ZooKeeper cannot be dumped. The text is one sentence."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Write a dump into a run's folder; return the exit code."""
    parser = argparse.ArgumentParser(prog="znode_dump", description=__doc__)
    parser.add_argument("connect")
    parser.add_argument("folder", type=Path)
    parser.add_argument("name", choices=("first", "final"))
    options = parser.parse_args(arguments)
    os.umask(0o077)
    try:
        # The properties contain a credential: standard input keeps it out of the process list.
        access = read_access(json.loads(sys.stdin.readline() or "{}"))
        asyncio.run(dump(options.connect, options.folder, options.name, access))
    except DumpError as error:
        print(error, file=sys.stderr)
        return 2
    return 0


def read_access(properties: Mapping[str, str]) -> ZooKeeperAccess:
    """Return the access of the dump: the broker credential if set, and TLS if enabled.

    Raises:
        DumpError: the properties cannot be used.
    """
    credential = properties.get("bridgehead.zookeeper.broker.credential", "")
    try:
        tls = build_zookeeper_tls(read_zookeeper_tls(BrokerConfig.from_properties(properties)))
    except SecurityConfigError as error:
        raise DumpError(str(error)) from None
    return ZooKeeperAccess(Credential.parse(credential) if credential else None, tls=tls)


async def dump(connect: str, folder: Path, name: str, access: ZooKeeperAccess = OPEN_ACCESS) -> int:
    """Write `zookeeper/<name>.jsonl` into a run's folder; return its zxid.

    Raises:
        DumpError: ZooKeeper cannot be read, or writes do not pause.
    """
    hosts, slash, chroot = connect.partition("/")
    session = ZooKeeperSession(
        hosts,
        session_timeout_ms=_SESSION_TIMEOUT_MS,
        on_state=lambda _state: None,
        access=access,
    )
    try:
        await session.open(_OPEN_TIMEOUT_S)
    except ConnectionLostError as lost:
        raise DumpError(f"{lost}.") from None
    try:
        return await dump_through(session, slash + chroot, folder, name)
    except ValueError as denied:
        raise DumpError(f"Some znodes cannot be read: {denied}.") from None
    except ConnectionLostError as lost:
        raise DumpError(f"The connection to ZooKeeper was lost during the dump: {lost}.") from None
    finally:
        await session.close()


async def dump_through(session: ZooKeeperSession, chroot: str, folder: Path, name: str) -> int:
    """Write a dump, as `dump` does, through an open session.

    Raises:
        DumpError: writes do not pause.
        ConnectionLostError: the connection broke.
    """
    zxid, lines = await _consistent_read(session, chroot)
    _write(folder, f"zookeeper/{name}.jsonl", zxid, lines)
    return zxid


async def _consistent_read(session: ZooKeeperSession, chroot: str) -> tuple[int, list[DumpLine]]:
    for _ in range(_ATTEMPTS_MAX):
        await session.children("/")
        before = session.last_zxid
        lines = await _read_all(session, chroot)
        await session.children("/")
        if session.last_zxid == before:
            return before, lines
        await asyncio.sleep(_PAUSE_S)
    raise DumpError("ZooKeeper receives writes all the time: no consistent dump is possible.")


async def _read_all(session: ZooKeeperSession, chroot: str) -> list[DumpLine]:
    """Read breadth first: at each depth, all lists of children, then all data."""
    lines: list[DumpLine] = []
    parents = [chroot]
    while parents:
        children_of_parents = await session.read(
            [ReadChildren(parent or "/") for parent in parents]
        )
        paths = [
            f"{parent}/{child}"
            for parent, children in zip(parents, children_of_parents, strict=True)
            for child in cast(Sequence[str], children or ())
        ]
        paths = sorted(path for path in paths if path != _NOT_OURS)
        znodes = await session.read([ReadData(path) for path in paths])
        for path, znode in zip(paths, znodes, strict=True):
            if znode is not None:
                lines.append(_line(path[len(chroot) :], cast(ZnodeData, znode)))
        parents = paths
    return sorted(lines, key=lambda line: line.path)


def _line(path: str, znode: ZnodeData) -> DumpLine:
    stat = znode.stat
    owner = stat.ephemeral_owner & (2**64 - 1)
    return DumpLine(
        path=path,
        czxid=stat.czxid,
        mzxid=stat.mzxid,
        version=stat.version,
        ephemeral_owner=f"0x{owner:x}" if owner else None,
        digest=content_digest(znode.data),
        data=content_text(path, znode.data),
    )


def _write(folder: Path, name: str, zxid: int, lines: Sequence[DumpLine]) -> None:
    (folder / "zookeeper").mkdir(parents=True, exist_ok=True)
    (folder / name).write_bytes(b"".join(orjson.dumps(line) + b"\n" for line in lines))
    dumps = folder / DUMPS
    zxids = json.loads(dumps.read_bytes()) if dumps.is_file() else {}
    dumps.write_bytes(orjson.dumps({**zxids, name: zxid}))


if __name__ == "__main__":
    sys.exit(main())
