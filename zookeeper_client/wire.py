"""ZooKeeper requests that kazoo lacks or encodes slowly: a prebuilt multi, MultiRead, AddWatch.

kazoo can send any object that has a `type` and a method `serialize`. It passes the reply to the
object's method `deserialize`, on the connection's thread. Encoding a multi in one pass takes a
quarter of the time that kazoo's transactions take. This matters for large requests: the creation of
1,000 topics needs 5,000 operations.
"""

from __future__ import annotations

import struct
from collections.abc import Awaitable, Callable, Sequence
from functools import lru_cache
from typing import Final, NamedTuple, cast

from cluster_model.znodes.access import OPEN, ZnodeAcl
from cluster_model.znodes.operations import Check, Create, Delete, Operation, SetData

_INT: Final = struct.Struct("!i")
_LENGTH: Final = _INT.pack
_MULTI_HEADER: Final = struct.Struct("!iBi")
_STAT: Final = struct.Struct("!qqqqiiiqiiq")
_VERSION_AT: Final = 32  # the offset of `version` in a stat
# The header of a result, and the int that follows it: a length, a count or an error code.
_RESULT: Final = struct.Struct("!iBii")
_CREATE, _DELETE, _GET_DATA, _SET_DATA, _GET_CHILDREN, _CHECK = 1, 2, 4, 5, 8, 13
_MULTI, _MULTI_READ, _ADD_WATCH = 14, 22, 106
_PERSISTENT_RECURSIVE: Final = 1
_ERROR: Final = -1
_OK, _RUNTIME_INCONSISTENCY = 0, -2
_DONE: Final = _MULTI_HEADER.pack(-1, 1, -1)
_HEADERS: Final = {
    kind: _MULTI_HEADER.pack(kind, 0, -1)
    for kind in (_CREATE, _DELETE, _GET_DATA, _SET_DATA, _GET_CHILDREN, _CHECK)
}
_EPHEMERAL, _SEQUENTIAL = 1, 2
NO_NODE: Final = -101
NO_AUTH: Final = -102
BAD_VERSION: Final = -103
NODE_EXISTS: Final = -110


def _text(text: str) -> bytes:
    data = text.encode()
    return _LENGTH(len(data)) + data


@lru_cache(maxsize=16)
def encode_acl(entries: tuple[ZnodeAcl, ...]) -> bytes:
    """Return `entries` as a jute vector. Cached, because every created znode needs one."""
    parts = [_LENGTH(len(entries))]
    for entry in entries:
        parts += (_LENGTH(entry.permissions), _text(entry.scheme), _text(entry.id))
    return b"".join(parts)


_OPEN_BYTES: Final = encode_acl(OPEN)
AclOf = Callable[[str], bytes]


def open_acl(_path: str) -> bytes:
    """Return the ACL that allows everyone everything, as in Kafka without zookeeper.set.acl."""
    return _OPEN_BYTES


def encode_operation(operation: Operation, chroot: str, acl_of: AclOf) -> bytes:
    """Return the bytes of one operation of a multi, including its header."""
    path = _text(chroot + operation.path)
    match operation:
        case Create(_, data, ephemeral, sequential):
            flags = (_EPHEMERAL if ephemeral else 0) | (_SEQUENTIAL if sequential else 0)
            body = _LENGTH(-1) if data is None else _LENGTH(len(data)) + data
            return b"".join((_HEADERS[_CREATE], path, body, acl_of(operation.path), _LENGTH(flags)))
        case SetData(_, data, version):
            return b"".join((_HEADERS[_SET_DATA], path, _LENGTH(len(data)), data, _LENGTH(version)))
        case Delete(_, version):
            return _HEADERS[_DELETE] + path + _LENGTH(version)
        case Check(_, version):
            return _HEADERS[_CHECK] + path + _LENGTH(version)


class MultiResult(NamedTuple):
    """The result of a multi. If `failed_index` is None, the multi was applied at `zxid`."""

    zxid: int
    failed_index: int | None = None
    error_code: int = 0  # ZooKeeper's code, for example -110 NodeExists


class PrebuiltMulti:
    """A kazoo request: a multi whose operations are already encoded."""

    type = _MULTI

    def __init__(self, operations: Sequence[bytes], last_zxid: Callable[[], int]) -> None:
        self._operations = operations
        self._last_zxid = last_zxid

    def serialize(self) -> bytes:
        """Return the body; kazoo prepends xid and type."""
        return b"".join((*self._operations, _DONE))

    def deserialize(self, data: bytes, offset: int) -> list[MultiResult]:
        """Decode the reply. The reply to a rejected multi has one error per operation."""
        zxid = self._last_zxid()
        (kind, done, _) = _MULTI_HEADER.unpack_from(data, offset)
        if kind != _ERROR or done:
            return [MultiResult(zxid)]
        index = 0
        while not done:
            offset += _MULTI_HEADER.size
            (code,) = _INT.unpack_from(data, offset)
            offset += _INT.size
            if code not in (_OK, _RUNTIME_INCONSISTENCY):
                return [MultiResult(zxid, index, code)]
            index += 1
            (kind, done, _) = _MULTI_HEADER.unpack_from(data, offset)
        return [MultiResult(zxid, 0, _RUNTIME_INCONSISTENCY)]


class AddWatch:
    """A kazoo request: a watch on a znode and all znodes below it that fires again and again.

    It needs ZooKeeper 3.6, as MultiRead does.
    """

    type = _ADD_WATCH

    def __init__(self, path: str) -> None:
        self._path = path

    def serialize(self) -> bytes:
        """Return the body; kazoo prepends xid and type."""
        return _text(self._path) + _INT.pack(_PERSISTENT_RECURSIVE)

    def deserialize(self, _data: bytes, _offset: int) -> bool:
        """The header of the reply has said that the watch is set."""
        return True


class Stat(NamedTuple):
    """ZooKeeper's record of a znode, with ZooKeeper's field names."""

    czxid: int
    mzxid: int
    ctime: int
    mtime: int
    version: int
    cversion: int
    aversion: int
    ephemeral_owner: int
    data_length: int
    num_children: int
    pzxid: int

    def pack(self) -> bytes:
        """Return the stat as ZooKeeper encodes it."""
        return _STAT.pack(*self)


class ZnodeData(NamedTuple):
    """A znode's data (None if it was created without data) and its stat."""

    data: bytes | None
    packed_stat: bytes

    @property
    def stat(self) -> Stat:
        """The stat, decoded on demand.

        A controller may load 100,000 znodes, and it needs only the `version` of most of them.
        """
        return Stat._make(_STAT.unpack(self.packed_stat))

    @property
    def version(self) -> int:
        """The data version."""
        (version,) = _INT.unpack_from(self.packed_stat, _VERSION_AT)
        return cast(int, version)


class ReadData(NamedTuple):
    """Reads a znode's data in a MultiRead."""

    path: str


class ReadChildren(NamedTuple):
    """Reads the names of a znode's children in a MultiRead."""

    path: str


Read = ReadData | ReadChildren


class ReadDenied(NamedTuple):
    """The znode's ACL does not allow the session to read it."""


# ZnodeData for ReadData, a list of names for ReadChildren; None if the znode does not exist.
ReadResult = ZnodeData | list[str] | None
ReadMany = Callable[[Sequence[Read]], Awaitable[list[ReadResult]]]  # a session's multi-read


class MultiRead:
    """A kazoo request: many reads in one (opcode 22, ZooKeeper 3.6 and later)."""

    type = _MULTI_READ

    def __init__(self, reads: Sequence[Read], chroot: str, *, may_be_denied: bool = False) -> None:
        """`may_be_denied`: the result of a read without the right is ReadDenied, no error."""
        self._reads = reads
        self._chroot = chroot
        self._may_be_denied = may_be_denied

    def serialize(self) -> bytes:
        """Return the body; MultiRead cannot set watches."""
        data, children = _HEADERS[_GET_DATA], _HEADERS[_GET_CHILDREN]
        parts: list[bytes] = []
        for read in self._reads:
            path = (self._chroot + read.path).encode()
            header = data if isinstance(read, ReadData) else children
            parts.append(b"%b%b%b\x00" % (header, _LENGTH(len(path)), path))
        parts.append(_DONE)
        return b"".join(parts)

    def deserialize(self, data: bytes, offset: int) -> list[ReadResult | ReadDenied]:
        """Decode the reply: one result per read, None when the znode does not exist."""
        results: list[ReadResult | ReadDenied] = []
        data += _LENGTH(0)  # `unpack` needs an int after every header; the last one has none.
        unpack, stat_size = _RESULT.unpack_from, _STAT.size
        (kind, done, _, number) = unpack(data, offset)
        while not done:
            offset += _RESULT.size
            if kind == _GET_DATA:
                content = None
                if number >= 0:
                    content = data[offset : offset + number]
                    offset += number
                results.append(ZnodeData(content, data[offset : offset + stat_size]))
                offset += stat_size
            elif kind == _GET_CHILDREN:
                names, offset = _read_names(data, offset, number)
                results.append(names)
            elif number == NO_NODE:
                results.append(None)
            elif number == NO_AUTH and self._may_be_denied:
                results.append(ReadDenied())
            else:
                raise ValueError(f"MultiRead returned error {number}")
            (kind, done, _, number) = unpack(data, offset)
        return results


def _read_names(data: bytes, offset: int, count: int) -> tuple[list[str], int]:
    names = []
    for _ in range(count):
        (length,) = _INT.unpack_from(data, offset)
        offset += 4
        names.append(data[offset : offset + length].decode())
        offset += length
    return names, offset
