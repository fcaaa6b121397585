"""Reads the znodes of a running ensemble. Nothing is written.

ZooKeeper itself counts the begin and the end of the reading session as two transactions.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import Final, cast

from cluster_model.session_state import ConnectionLostError, ZooKeeperRejectedError
from cluster_model.znodes.access import OPEN_ACCESS, ZnodeAcl, ZooKeeperAccess
from rehearse.znodes import ROOTS, ZNODES_MAX, Hidden, SourceError, Znode, ZnodeTree
from zookeeper_client.session import ZooKeeperSession
from zookeeper_client.wire import ReadChildren, ReadData, ReadDenied, ReadResult, ZnodeData

_OPEN_TIMEOUT_S: Final = 10.0
_SESSION_TIMEOUT_MS: Final = 30_000
_ATTEMPTS_MAX: Final = 3
_ACLS_AT_ONCE: Final = 1_000


async def read_ensemble(
    address: str, access: ZooKeeperAccess = OPEN_ACCESS, *, acls: bool = True
) -> ZnodeTree:
    """Return the tree of a running ensemble.

    It is read again, at most three times, if writes happen meanwhile.

    Args:
        address: `HOST:PORT[,HOST:PORT...][/chroot]`.
        access: the credential and the TLS context of the session.
        acls: also read the ACL of each znode, which takes most of the time.

    Raises:
        SourceError: there is no ZooKeeper, no chroot, or no connection to the end.
    """
    hosts, slash, chroot = address.rstrip("/").partition("/")
    try:
        session = ZooKeeperSession(
            hosts + slash + chroot,
            session_timeout_ms=_SESSION_TIMEOUT_MS,
            on_state=lambda _state: None,
            access=access,
        )
        await session.open(_OPEN_TIMEOUT_S)
    except (ConnectionLostError, ValueError) as error:
        raise SourceError(f"{address}: {error}.") from None
    try:
        if await session.exists("/" if not chroot else "") is None:
            raise SourceError(f"{address}: there is no /{chroot} in this ZooKeeper.")
        return await _read_tree(session, acls)
    except ZooKeeperRejectedError as error:
        hint = "A ZooKeeper before 3.6 cannot be read so: use --snapshot"
        raise SourceError(f"{address}: {error}. {hint}.") from None
    except (ConnectionLostError, ValueError) as error:
        raise SourceError(f"{address}: {error}.") from None
    finally:
        await session.close()


async def _read_tree(session: ZooKeeperSession, with_acls: bool) -> ZnodeTree:
    for _ in range(_ATTEMPTS_MAX):
        await session.sync()
        await session.children("")
        before = session.last_zxid
        znodes = await _read_all(session, with_acls)
        await session.children("")
        if session.last_zxid == before:
            return ZnodeTree(znodes, before)
    return ZnodeTree(znodes, session.last_zxid, is_one_state=False)


async def _read_all(session: ZooKeeperSession, with_acls: bool) -> Mapping[str, Znode]:
    """Read breadth first: at each depth, all data, all lists of children, all ACLs."""
    znodes: dict[str, Znode] = {}
    paths: Sequence[str] = ROOTS
    while paths:
        results = await session.read_allowed([ReadData(path) for path in paths])
        existing = [path for path, result in zip(paths, results, strict=True) if result is not None]
        acls = await _acls(session, existing) if with_acls else {}
        for path, result in zip(paths, results, strict=True):
            if result is not None:
                znodes[path] = _znode(result, acls.get(path))
        if len(znodes) > ZNODES_MAX:
            raise ValueError(f"more than {ZNODES_MAX:,} znodes")
        # A session may list the children of a znode only if it may read the znode's data.
        parents = [path for path in existing if znodes[path].hidden is None]
        lists = await session.read_allowed([ReadChildren(path) for path in parents])
        paths = [
            f"{parent}/{child}"
            for parent, children in zip(parents, lists, strict=True)
            if not isinstance(children, ReadDenied)
            for child in cast(Sequence[str], children or ())
        ]
    return znodes


def _znode(result: ReadResult | ReadDenied, acls: tuple[ZnodeAcl, ...] | None) -> Znode:
    if isinstance(result, ReadDenied):
        return Znode(acls=acls, hidden=Hidden.NO_AUTH)
    stat = cast(ZnodeData, result).stat
    return Znode(
        cast(ZnodeData, result).data, stat.version, ephemeral=stat.ephemeral_owner != 0, acls=acls
    )


async def _acls(
    session: ZooKeeperSession, paths: Sequence[str]
) -> dict[str, tuple[ZnodeAcl, ...] | None]:
    acls: dict[str, tuple[ZnodeAcl, ...] | None] = {}
    for start in range(0, len(paths), _ACLS_AT_ONCE):
        chunk = paths[start : start + _ACLS_AT_ONCE]
        acls.update(zip(chunk, await asyncio.gather(*map(session.acl, chunk)), strict=True))
    return acls
