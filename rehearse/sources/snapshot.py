"""Reads the znodes of a ZooKeeper server's files: its newest intact snapshot, and the later log.

A snapshot is fuzzy: writes go on while the server writes it. The transactions since its zxid are
applied as ZooKeeper itself applies them at a restart: a znode that is already there or already gone
is no error, and each change brings its own version.

Layout of a snapshot (Jute): a header of 16 bytes, the sessions, the ACLs by number, then for each
znode its path, data, ACL's number and stat. The path `/` ends the list, and an Adler-32 checksum of
everything before it follows.
"""

from __future__ import annotations

import gzip
import re
import struct
import zlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Final

from cluster_model.znodes.access import OPEN, ZnodeAcl
from judge.transaction_log import (
    LoggedOperation,
    TornLogError,
    Transaction,
    log_files,
    read_log,
)
from rehearse.znodes import ZNODES_MAX, SourceError, Znode, ZnodeTree, is_in_layout

_HEADER: Final = struct.Struct(">4siq")
_INT: Final = struct.Struct(">i")
_LONG: Final = struct.Struct(">q")
_SESSION: Final = struct.Struct(">qi")
# The number of the ACL, czxid, mzxid, ctime, mtime, version, cversion, aversion, owner, pzxid.
_ZNODE: Final = struct.Struct(">qqqqqiiiqq")
_MAGIC: Final = b"ZKSN"
_OPEN_ACL: Final = -1
_NAME: Final = re.compile(r"snapshot\.([0-9a-f]{1,16})(\.gz|\.snappy)?")
_BYTES_MAX: Final = 1 << 31
_EPOCH_SHIFT: Final = 32


@dataclass(frozen=True, slots=True)
class _Stored:
    """A znode with the session that owns it, 0 if it is persistent."""

    znode: Znode
    owner: int


class _Damaged(Exception):
    """A snapshot is incomplete or damaged."""


def read_snapshot(directory: Path, chroot: str = "", logs: Path | None = None) -> ZnodeTree:
    """Return the tree that a ZooKeeper server has on its disk. The server may be running.

    Args:
        directory: ZooKeeper's dataDir, or its folder `version-2`.
        chroot: the path that Kafka uses as its root, such as `/kafka`.
        logs: ZooKeeper's dataLogDir, if it has one.

    Raises:
        SourceError: there is no intact snapshot, a log is damaged, or transactions are missing.
    """
    chroot = chroot.rstrip("/")
    try:
        zxid, stored = _newest_snapshot(directory, chroot)
        for transaction in _later_transactions(logs or directory, zxid):
            _apply(transaction, stored, chroot)
            zxid = transaction.zxid
    except (OSError, TornLogError) as error:
        raise SourceError(f"{directory}: {error}.") from None
    if chroot and stored.pop(chroot, None) is None:
        raise SourceError(f"{directory}: there is no {chroot} in this ZooKeeper.")
    return ZnodeTree({path[len(chroot) :]: entry.znode for path, entry in stored.items()}, zxid)


def _is_wanted(path: str, chroot: str) -> bool:
    """Return whether a path is the chroot itself, or Kafka's below it."""
    is_below = path.startswith(f"{chroot}/")
    return (is_below and is_in_layout(path[len(chroot) :])) or bool(chroot and path == chroot)


def _newest_snapshot(directory: Path, chroot: str) -> tuple[int, dict[str, _Stored]]:
    """Return the zxid and the wanted znodes of the newest intact snapshot."""
    folder = directory / "version-2" if (directory / "version-2").is_dir() else directory
    named = [(match, file) for file in folder.iterdir() if (match := _NAME.fullmatch(file.name))]
    if not named:
        raise SourceError(f"{directory} has no snapshot.*: give a dataDir of ZooKeeper.")
    problems = []
    for match, file in sorted(named, key=lambda pair: int(pair[0][1], 16), reverse=True):
        try:
            if match[2] == ".snappy":
                raise _Damaged("compressed with snappy, which is not supported")
            znodes = {path: entry for path, entry in _read(file) if _is_wanted(path, chroot)}
            return int(match[1], 16), znodes
        except (struct.error, IndexError, _Damaged, EOFError, zlib.error, OSError) as error:
            problems.append(f"{file.name}: {error}")
    raise SourceError(f"{directory} has no intact snapshot: {'; '.join(problems[:3])}.")


def _read(file: Path) -> Iterator[tuple[str, _Stored]]:
    data = _content(file)
    magic, _, _ = _HEADER.unpack_from(data)
    if magic != _MAGIC:
        raise _Damaged("it does not begin as a snapshot")
    at = _HEADER.size
    (sessions,) = _INT.unpack_from(data, at)
    at += _INT.size + _count(sessions, _SESSION.size, data) * _SESSION.size
    acls, at = _acls(data, at)
    for _ in range(ZNODES_MAX):
        path, at = _buffer(data, at)
        if path == b"/":
            break
        content, at = _buffer(data, at)
        fields = _ZNODE.unpack_from(data, at)
        at += _ZNODE.size
        acl, version, owner = fields[0], fields[5], fields[8]
        znode = Znode(content, version, ephemeral=owner != 0, acls=acls.get(acl))
        yield (path or b"").decode("utf-8", "replace"), _Stored(znode, owner & (2**64 - 1))
    else:
        raise _Damaged(f"it has more than {ZNODES_MAX:,} znodes")
    (checksum,) = _LONG.unpack_from(data, at)
    if checksum != zlib.adler32(memoryview(data)[:at]):
        raise _Damaged("its checksum is wrong")


def _content(file: Path) -> bytes:
    if file.suffix == ".gz":
        with gzip.open(file) as stream:
            data = stream.read(_BYTES_MAX + 1)
    elif file.stat().st_size > _BYTES_MAX:
        raise _Damaged(f"it has more than {_BYTES_MAX:,} bytes")
    else:
        data = file.read_bytes()
    if len(data) > _BYTES_MAX:
        raise _Damaged(f"it has more than {_BYTES_MAX:,} bytes")
    return data


def _count(number: int, size: int, data: bytes) -> int:
    """Return a count, unless so many elements cannot be in the file."""
    if not 0 <= number * size <= len(data):
        raise _Damaged("it has an impossible count")
    return number


def _buffer(data: bytes, at: int) -> tuple[bytes | None, int]:
    (length,) = _INT.unpack_from(data, at)
    start = at + _INT.size
    if length < 0:
        return None, start
    if start + length > len(data):
        raise _Damaged("it is cut off")
    return data[start : start + length], start + length


def _acls(data: bytes, at: int) -> tuple[Mapping[int, tuple[ZnodeAcl, ...]], int]:
    acls: dict[int, tuple[ZnodeAcl, ...]] = {_OPEN_ACL: OPEN}
    (count,) = _INT.unpack_from(data, at)
    at += _INT.size
    for _ in range(_count(count, _LONG.size, data)):
        (number,) = _LONG.unpack_from(data, at)
        acls[number], at = _acl(data, at + _LONG.size)
    return acls, at


def _acl(data: bytes, at: int) -> tuple[tuple[ZnodeAcl, ...], int]:
    (count,) = _INT.unpack_from(data, at)
    at += _INT.size
    entries = []
    for _ in range(max(count, 0)):
        (permissions,) = _INT.unpack_from(data, at)
        scheme, at = _buffer(data, at + _INT.size)
        identity, at = _buffer(data, at)
        texts = ((text or b"").decode("utf-8", "replace") for text in (scheme, identity))
        entries.append(ZnodeAcl(permissions, *texts))
    return tuple(entries), at


@lru_cache(maxsize=64)
def _logged_acl(encoded: bytes) -> tuple[ZnodeAcl, ...]:
    entries, _ = _acl(encoded, 0)
    return entries


def _later_transactions(directory: Path, zxid: int) -> Iterator[Transaction]:
    """Yield the transactions after `zxid`, in order.

    Raises:
        TornLogError: a log is damaged, or transactions are missing.
    """
    files = log_files(directory)
    starts = [int(file.suffix[1:], 16) for file in files]
    # The log that begins before the snapshot may have transactions after it.
    first = max((index for index, start in enumerate(starts) if start <= zxid + 1), default=0)
    last = zxid
    for file in files[first:]:
        for transaction in read_log(file):
            if transaction.zxid <= last:
                continue
            is_next = transaction.zxid == last + 1
            if not is_next and transaction.zxid >> _EPOCH_SHIFT == last >> _EPOCH_SHIFT:
                raise TornLogError(
                    f"{file.name}: the transactions from 0x{last + 1:x} to "
                    f"0x{transaction.zxid - 1:x} are missing"
                )
            last = transaction.zxid
            yield transaction


def _apply(transaction: Transaction, stored: dict[str, _Stored], chroot: str) -> None:
    if transaction.failed:
        return
    if transaction.kind == "close_session":
        # Since ZooKeeper 3.6 the log names the znodes; before that, they are all of the session's.
        owned = [path for path, entry in stored.items() if entry.owner == transaction.session]
        for path in owned:
            del stored[path]
    for operation in transaction.operations:
        if _is_wanted(operation.path, chroot):
            _apply_operation(operation, transaction.session, stored)


def _apply_operation(operation: LoggedOperation, session: int, stored: dict[str, _Stored]) -> None:
    path, entry = operation.path, stored.get(operation.path)
    acls = _logged_acl(operation.acl) if operation.acl is not None else None
    match operation.kind:
        case "create" if entry is None:
            znode = Znode(operation.data, 0, ephemeral=operation.ephemeral, acls=acls)
            stored[path] = _Stored(znode, session if operation.ephemeral else 0)
        case "set" if entry is not None:
            znode = replace(entry.znode, data=operation.data, version=operation.version)
            stored[path] = replace(entry, znode=znode)
        case "set_acl" if entry is not None:
            stored[path] = replace(entry, znode=replace(entry.znode, acls=acls))
        case "delete":
            stored.pop(path, None)
