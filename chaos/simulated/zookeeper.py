"""A model of one ZooKeeper server: znodes, sessions, watches and the transaction log.

It has no network and no clock. `chaos.simulated.zookeeper_session` carries requests to it.
tests/zookeeper_cases.py has the cases that run on this model and on a real ZooKeeper.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Final

from cluster_model.znodes.operations import ANY_VERSION, Check, Create, Delete, Operation, SetData
from judge.transaction_log import LoggedOperation, Transaction
from zookeeper_client.wire import (
    BAD_VERSION,
    NO_NODE,
    NODE_EXISTS,
    MultiResult,
    Read,
    ReadChildren,
    ReadData,
    ReadResult,
    Stat,
    ZnodeData,
)

NO_CHILDREN_FOR_EPHEMERALS: Final = -108
NOT_EMPTY: Final = -111
_INT: Final = struct.Struct("!i")
_HEADER_BYTES: Final = 9
_CREATE, _DELETE, _SET_DATA, _CHECK = 1, 2, 5, 13
_EPHEMERAL, _SEQUENTIAL = 1, 2
_FIRST_ZXID: Final = 1 << 32
_FIRST_SESSION: Final = 0x1000_0000_0001


@dataclass(slots=True)
class Znode:
    """A znode; `ephemeral_owner` is a session's id, or 0."""

    data: bytes | None
    czxid: int
    mzxid: int
    ctime: int
    mtime: int
    ephemeral_owner: int = 0
    version: int = 0
    created: int = 0  # how many children were ever created
    pzxid: int = 0
    children: dict[str, None] = field(default_factory=dict)

    def copy(self) -> Znode:
        """Return a copy with the same dictionary of children."""
        return Znode(
            self.data,
            self.czxid,
            self.mzxid,
            self.ctime,
            self.mtime,
            self.ephemeral_owner,
            self.version,
            self.created,
            self.pzxid,
            self.children,
        )

    def stat(self) -> Stat:
        """Return the stat as clients see it."""
        count = len(self.children)
        return Stat(
            czxid=self.czxid,
            mzxid=self.mzxid,
            ctime=self.ctime,
            mtime=self.mtime,
            version=self.version,
            cversion=self.created * 2 - count,  # creations plus deletions of children
            aversion=0,
            ephemeral_owner=self.ephemeral_owner,
            data_length=len(self.data or b""),
            num_children=count,
            pzxid=self.pzxid,
        )


@dataclass(slots=True)
class ServerSession:
    """A session at the server. `notify` sends the path of a fired watch to the client."""

    id: int
    timeout_s: float
    heard_s: float
    notify: Callable[[str, str], None] | None = None  # kind of watch (data, child, below), path
    ephemerals: dict[str, None] = field(default_factory=dict)
    data_watches: dict[str, None] = field(default_factory=dict)
    child_watches: dict[str, None] = field(default_factory=dict)
    below_watches: dict[str, None] = field(default_factory=dict)  # persistent

    def forget_watches(self) -> None:
        """Remove all watches: the connection has ended."""
        for watches in (self.data_watches, self.child_watches, self.below_watches):
            watches.clear()


class _Undo:
    """What a multi has changed so far, for its rollback."""

    def __init__(self, znodes: dict[str, Znode]) -> None:
        self._znodes = znodes
        self._before: dict[str, Znode | None] = {}
        self._children: list[tuple[dict[str, None], str]] = []  # the children added or removed

    def note(self, path: str, znode: Znode | None) -> None:
        """Keep the state of a znode before its first change; None if it does not exist."""
        if path not in self._before:
            self._before[path] = None if znode is None else znode.copy()

    def note_child(self, children: dict[str, None], name: str) -> None:
        """Note that a child is about to be added or removed."""
        self._children.append((children, name))

    def roll_back(self) -> None:
        """Restore everything."""
        for children, name in reversed(self._children):
            if name in children:
                del children[name]
            else:
                children[name] = None
        for path, znode in self._before.items():
            if znode is None:
                self._znodes.pop(path, None)
            else:
                self._znodes[path] = znode


class _RejectedError(Exception):
    """An operation of a multi fails with this error code."""

    def __init__(self, code: int) -> None:
        super().__init__(code)
        self.code = code


class ZooKeeperModel:
    """The server. Times in seconds are of a monotonic clock, times in ms of the wall clock."""

    def __init__(self, now_ms: Callable[[], int]) -> None:
        self._now_ms = now_ms
        self.zxid = _FIRST_ZXID
        self.sessions: dict[int, ServerSession] = {}
        self.log: list[Transaction] = []
        self._next_session = _FIRST_SESSION
        self._znodes = {"": Znode(None, 0, 0, 0, 0)}

    # --- Sessions --------------------------------------------------------------------------------

    def open_session(self, timeout_s: float, now_s: float) -> ServerSession:
        """Create a session."""
        session = ServerSession(self._next_session, timeout_s, now_s)
        self._next_session += 1
        self.sessions[session.id] = session
        self._record(session.id, "create_session", ())
        return session

    def close_session(self, session_id: int) -> None:
        """End a session and delete its ephemeral znodes. Does nothing if it has ended."""
        session = self.sessions.pop(session_id, None)
        if session is None:
            return
        paths = list(session.ephemerals)
        operations = tuple(LoggedOperation("delete", path) for path in paths)
        self._record(session_id, "close_session", operations)
        for path in paths:
            self._remove(path)
        for path in paths:
            self._fire_deleted(path)

    def expire_sessions(self, now_s: float) -> None:
        """Close the sessions that have been silent for longer than their timeouts."""
        for session in tuple(self.sessions.values()):
            if now_s - session.heard_s > session.timeout_s:
                self.close_session(session.id)

    # --- Reads -----------------------------------------------------------------------------------

    def get(self, session: ServerSession, path: str, *, watch: bool) -> ZnodeData | None:
        """Return a znode. If it does not exist, return None and set no watch."""
        znode = self._znodes.get(_key(path))
        if znode is None:
            return None
        if watch:
            session.data_watches[path] = None
        return ZnodeData(znode.data, znode.stat().pack())

    def exists(self, session: ServerSession, path: str, *, watch: bool) -> Stat | None:
        """Return a znode's stat. The watch is set whether the znode exists or not."""
        if watch:
            session.data_watches[path] = None
        znode = self._znodes.get(_key(path))
        return None if znode is None else znode.stat()

    def children(self, session: ServerSession, path: str, *, watch: bool) -> list[str] | None:
        """Return the names of the children. If there is no znode, return None and set no watch."""
        znode = self._znodes.get(_key(path))
        if znode is None:
            return None
        if watch:
            session.child_watches[path] = None
        return list(znode.children)

    def watch_below(self, session: ServerSession, path: str) -> None:
        """Watch a path and everything below it until the connection ends."""
        session.below_watches[path] = None

    def read(self, reads: Iterable[Read]) -> list[ReadResult]:
        """Read many znodes, all in the same state of the tree."""
        results: list[ReadResult] = []
        for read in reads:
            znode = self._znodes.get(_key(read.path))
            match read:
                case _ if znode is None:
                    results.append(None)
                case ReadData():
                    results.append(ZnodeData(znode.data, znode.stat().pack()))
                case ReadChildren():
                    results.append(list(znode.children))
        return results

    def paths(self) -> list[str]:
        """Return the paths of all znodes but the root."""
        return [path for path in self._znodes if path]

    # --- Writes ----------------------------------------------------------------------------------

    def multi(self, session: ServerSession, operations: Sequence[bytes]) -> MultiResult:
        """Execute all operations, or none."""
        decoded = [decode_operation(encoded) for encoded in operations]
        undo = _Undo(self._znodes)
        zxid, now_ms = self.zxid + 1, self._now_ms()
        logged: list[LoggedOperation] = []
        for index, operation in enumerate(decoded):
            try:
                logged.append(self._apply(session.id, operation, zxid, now_ms, undo))
            except _RejectedError as rejected:
                undo.roll_back()
                codes = [0] * index + [rejected.code] + [-2] * (len(decoded) - index - 1)
                errors = tuple(LoggedOperation("error", error=code) for code in codes)
                self._record(session.id, "multi", errors, failed=True)
                return MultiResult(self.zxid, index, rejected.code)
        self._record(session.id, "multi", tuple(logged))
        self._note_ephemerals(session, logged)
        for logged_operation in logged:
            self._fire(logged_operation)
        return MultiResult(self.zxid)

    def _apply(
        self,
        session_id: int,
        operation: Operation,
        zxid: int,
        now_ms: int,
        undo: _Undo,
    ) -> LoggedOperation:
        match operation:
            case Create(path, data, ephemeral, sequential):
                owner = session_id if ephemeral else 0
                path = self._create(path, data, owner, sequential, zxid, now_ms, undo)
                return LoggedOperation("create", path, data, 0, ephemeral)
            case SetData(path, data, version):
                znode = self._for_change(path, undo)
                _require(znode, version)
                znode.data, znode.mzxid, znode.mtime = data, zxid, now_ms
                znode.version += 1
                return LoggedOperation("set", path, data, znode.version)
            case Delete(path, version):
                znode = self._for_change(path, undo)
                _require(znode, version)
                if znode.children:
                    raise _RejectedError(NOT_EMPTY)
                self._for_change(_parent(path), undo).pzxid = zxid
                undo.note_child(self._znodes[_parent(path)].children, path.rpartition("/")[2])
                self._remove(path)
                return LoggedOperation("delete", path)
            case Check(path, version):
                znode = self._existing(path)
                _require(znode, version)
                return LoggedOperation("check", path, None, znode.version)

    def _create(
        self,
        path: str,
        data: bytes | None,
        owner: int,
        sequential: bool,
        zxid: int,
        now_ms: int,
        undo: _Undo,
    ) -> str:
        parent = self._for_change(_parent(path), undo)
        if sequential:
            path = f"{path}{parent.created:010d}"
        if path in self._znodes:
            raise _RejectedError(NODE_EXISTS)
        if parent.ephemeral_owner:
            raise _RejectedError(NO_CHILDREN_FOR_EPHEMERALS)
        undo.note(path, None)
        undo.note_child(parent.children, path.rpartition("/")[2])
        self._znodes[path] = Znode(data, zxid, zxid, now_ms, now_ms, owner, pzxid=zxid)
        parent.children[path.rpartition("/")[2]] = None
        parent.created += 1
        parent.pzxid = zxid
        return path

    def _for_change(self, path: str, undo: _Undo) -> Znode:
        """Return a znode, after noting its state for a rollback."""
        znode = self._existing(path)
        undo.note(_key(path), znode)
        return znode

    def _existing(self, path: str) -> Znode:
        znode = self._znodes.get(_key(path))
        if znode is None:
            raise _RejectedError(NO_NODE)
        return znode

    def _remove(self, path: str) -> None:
        del self._znodes[path]
        parent = self._znodes[_parent(path)]
        parent.children.pop(path.rpartition("/")[2], None)
        parent.pzxid = max(parent.pzxid, self.zxid)

    def _note_ephemerals(self, session: ServerSession, logged: Sequence[LoggedOperation]) -> None:
        for operation in logged:
            if operation.kind == "create" and operation.ephemeral:
                session.ephemerals[operation.path] = None
            elif operation.kind == "delete":
                for owner in self.sessions.values():
                    owner.ephemerals.pop(operation.path, None)

    def _record(
        self,
        session_id: int,
        kind: str,
        operations: tuple[LoggedOperation, ...],
        *,
        failed: bool = False,
    ) -> None:
        self.zxid += 1
        now_ms = self._now_ms()
        self.log.append(Transaction(self.zxid, session_id, 0, now_ms, kind, operations, failed))

    # --- Watches ---------------------------------------------------------------------------------

    def _fire(self, done: LoggedOperation) -> None:
        if done.kind in ("set", "create"):
            self._fire_below(done.path)
        if done.kind == "set":
            self._notify("data", done.path)
        elif done.kind == "create":
            self._notify("data", done.path)
            self._notify("child", _parent(done.path) or "/")
        elif done.kind == "delete":
            self._fire_deleted(done.path)

    def _fire_below(self, path: str) -> None:
        for session in tuple(self.sessions.values()):
            for root in session.below_watches:
                if session.notify is not None and f"{path}/".startswith(f"{root}/"):
                    session.notify("below", path)

    def _fire_deleted(self, path: str) -> None:
        self._fire_below(path)
        self._notify("data", path)
        self._notify("child", path)
        self._notify("child", _parent(path) or "/")

    def _notify(self, kind: str, path: str) -> None:
        for session in tuple(self.sessions.values()):
            watches = session.data_watches if kind == "data" else session.child_watches
            if path in watches:
                del watches[path]
                if session.notify is not None:
                    session.notify(kind, path)


def _key(path: str) -> str:
    return "" if path == "/" else path


def _parent(path: str) -> str:
    return path.rpartition("/")[0]


def _require(znode: Znode, version: int) -> None:
    if version not in (ANY_VERSION, znode.version):
        raise _RejectedError(BAD_VERSION)


def decode_operation(data: bytes) -> Operation:
    """Decode one operation of a multi, as `zookeeper_client.wire.encode_operation` encodes it.

    Raises:
        ValueError: the operation has an unknown type.
    """
    (kind,) = _INT.unpack_from(data)
    raw, at = _buffer(data, _HEADER_BYTES)
    path = (raw or b"").decode()
    if kind == _CREATE:
        content, at = _buffer(data, at)
        (flags,) = _INT.unpack_from(data, len(data) - _INT.size)
        return Create(path, content, bool(flags & _EPHEMERAL), bool(flags & _SEQUENTIAL))
    if kind == _SET_DATA:
        content, at = _buffer(data, at)
        return SetData(path, content or b"", _INT.unpack_from(data, at)[0])
    if kind == _DELETE:
        return Delete(path, _INT.unpack_from(data, at)[0])
    if kind == _CHECK:
        return Check(path, _INT.unpack_from(data, at)[0])
    raise ValueError(f"an operation of unknown type {kind}")


def _buffer(data: bytes, at: int) -> tuple[bytes | None, int]:
    (length,) = _INT.unpack_from(data, at)
    start = at + _INT.size
    return (None, start) if length < 0 else (data[start : start + length], start + length)
