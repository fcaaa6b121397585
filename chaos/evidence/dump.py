"""All znodes below a chroot, written down as of one transaction.

The walk is repeated until nothing was written while it went; a ZooKeeper that never stands still
gives no dump, and what needs one is not judged.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final, cast

import orjson

from broker_proxy.authentication.sasl_server import SecurityConfigError
from chaos.evidence.commit_lines import digest_of, text_of
from chaos.evidence.reading import EvidenceError
from cluster_model.broker_configs import BrokerConfig
from cluster_model.session_state import ConnectionLostError
from cluster_model.znode_access import OPEN_ACCESS, Credential, ZooKeeperAccess
from event_log.commits import DumpLine
from event_log.evidence import DUMPS
from node.zookeeper_tls import build_zookeeper_tls, read_zookeeper_tls
from zookeeper_client.session import ZooKeeperSession
from zookeeper_client.wire import ReadChildren, ReadData, ZnodeData

_OPEN_TIMEOUT_S: Final = 10.0
_SESSION_TIMEOUT_MS: Final = 10_000
_ATTEMPTS_MAX: Final = 10
_PAUSE_S: Final = 0.2
_NOT_OURS: Final = "/zookeeper"


def read_access(properties: Mapping[str, str]) -> ZooKeeperAccess:
    """Return as whom a dump comes: the brokers' reader, where there is one, and over TLS if asked.

    Raises:
        EvidenceError: the properties cannot be used.
    """
    credential = properties.get("bridgehead.zookeeper.broker.credential", "")
    try:
        tls = build_zookeeper_tls(read_zookeeper_tls(BrokerConfig.from_properties(properties)))
    except SecurityConfigError as wrong:
        raise EvidenceError(str(wrong)) from None
    return ZooKeeperAccess(Credential.parse(credential) if credential else None, tls=tls)


async def dump(connect: str, folder: Path, name: str, access: ZooKeeperAccess = OPEN_ACCESS) -> int:
    """Write `zookeeper/<name>.jsonl` into a run's folder; return as of which zxid it is.

    Raises:
        EvidenceError: no ZooKeeper answers, or it did not stand still.
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
        raise EvidenceError(f"{lost}.") from None
    try:
        zxid, lines = await _standing_still(session, slash + chroot)
    except ValueError as refused:
        raise EvidenceError(f"ZooKeeper does not show everything: {refused}.") from None
    except ConnectionLostError as lost:
        raise EvidenceError(f"ZooKeeper went away while it was dumped: {lost}.") from None
    finally:
        await session.close()
    _write(folder, f"zookeeper/{name}.jsonl", zxid, lines)
    return zxid


async def _standing_still(session: ZooKeeperSession, chroot: str) -> tuple[int, list[DumpLine]]:
    for _ in range(_ATTEMPTS_MAX):
        await session.children("/")
        before = session.last_zxid
        lines = await _walk(session, chroot)
        await session.children("/")
        if session.last_zxid == before:
            return before, lines
        await asyncio.sleep(_PAUSE_S)
    raise EvidenceError("ZooKeeper is written to all the time: no dump is of one moment.")


async def _walk(session: ZooKeeperSession, chroot: str) -> list[DumpLine]:
    """Breadth first: the children of one depth are one round of MultiReads."""
    lines: list[DumpLine] = []
    parents = [chroot]
    while parents:
        found = await session.read([ReadChildren(parent or "/") for parent in parents])
        paths = [
            f"{parent}/{child}"
            for parent, children in zip(parents, found, strict=True)
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
        digest=digest_of(znode.data),
        data=text_of(path, znode.data),
    )


def _write(folder: Path, name: str, zxid: int, lines: Sequence[DumpLine]) -> None:
    (folder / "zookeeper").mkdir(parents=True, exist_ok=True)
    (folder / name).write_bytes(b"".join(orjson.dumps(line) + b"\n" for line in lines))
    dumps = folder / DUMPS
    known = json.loads(dumps.read_bytes()) if dumps.is_file() else {}
    dumps.write_bytes(orjson.dumps({**known, name: zxid}))
