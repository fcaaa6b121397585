"""Decodes ZooKeeper's transaction log: evidence that none of our code writes.

The log has the session of every write, the version that every check found, and rejected multis. It
does not show whether a check would have accepted any version.
Layout: a header of 16 bytes, then for each transaction a checksum, a length, the record and an end
byte. A length of zero marks the start of the preallocated tail.
"""

from __future__ import annotations

import re
import struct
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

_FILE_HEADER: Final = struct.Struct(">4siq")
_ENTRY: Final = struct.Struct(">qi")
_TXN_HEADER: Final = struct.Struct(">qiqqi")
_unpack_int: Final = struct.Struct(">i").unpack_from
_MAGIC: Final = b"ZKLG"
_END_OF_RECORD: Final = 0x42
# What may be the start of an entry: checksums are Adler-32 (32 bits) but stored in 64 bits, so they
# begin with zeros, and the length is neither negative nor zero. Matches may overlap.
_ENTRY_START: Final = re.compile(rb"(?s)(?=\0{4}.{4}(?!\0{4})[\0-\x7f].{3})")
LOG_BYTES_MAX: Final = 1 << 30  # ZooKeeper begins a new log long before
_LOG_NAME: Final = re.compile(r"log\.[0-9a-f]{1,16}")

_NEW_BYTES: Final = 1 << 20

CREATE, DELETE, SET_DATA, SET_ACL, CHECK, MULTI = 1, 2, 5, 7, 13, 14
CREATE2, RECONFIG, CREATE_CONTAINER, DELETE_CONTAINER, CREATE_TTL = 15, 16, 19, 20, 21
CREATE_SESSION, CLOSE_SESSION, ERROR = -10, -11, -1
_CREATES: Final = frozenset({CREATE, CREATE2, CREATE_CONTAINER, CREATE_TTL})
_DELETES: Final = frozenset({DELETE, DELETE_CONTAINER})


class TornLogError(Exception):
    """A file is not a log, or is damaged before its end. The message names the file."""


@dataclass(frozen=True, slots=True)
class LoggedOperation:
    """One operation. `version` is the one that a check found or that a set produced."""

    kind: str  # create, delete, set, check, set_acl, error, other
    path: str = ""
    data: bytes | None = None
    version: int = -1
    ephemeral: bool = False
    error: int = 0
    acl: bytes | None = None  # of a create or set_acl: the entries as Jute encodes them


@dataclass(frozen=True, slots=True)
class Transaction:
    """One transaction. If `failed` is true, ZooKeeper rejected it, and it changed nothing."""

    zxid: int
    session: int  # unsigned
    cxid: int
    time_ms: int
    kind: str  # multi, create, delete, set, create_session, close_session, error, other
    operations: tuple[LoggedOperation, ...]
    failed: bool = False


class _Reader:
    """Reads Jute records from one transaction's bytes."""

    __slots__ = ("_at", "_data")

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._at = 0

    def number(self) -> int:
        value: int = _unpack_int(self._data, self._at)[0]
        self._at += 4
        return value

    def flag(self) -> bool:
        self._at += 1
        return self._data[self._at - 1] != 0

    def buffer(self) -> bytes | None:
        length: int = _unpack_int(self._data, self._at)[0]
        start = self._at + 4
        if length < 0:
            self._at = start
            return None
        self._at = end = start + length
        if end > len(self._data):
            raise struct.error("a buffer ends beyond its transaction")
        return self._data[start:end]

    def text(self) -> str:
        return (self.buffer() or b"").decode("utf-8", "replace")

    def acl(self) -> bytes:
        start = self._at
        for _ in range(max(self.number(), 0)):
            self.number()
            self.buffer()
            self.buffer()
        return self._data[start : self._at]

    def is_done(self) -> bool:
        return self._at >= len(self._data)


def _operation(kind: int, record: _Reader) -> LoggedOperation:
    if kind in _CREATES:
        path, data = record.text(), record.buffer()
        acl = record.acl()
        ephemeral = record.flag() if kind in (CREATE, CREATE2) else False
        return LoggedOperation("create", path, data, 0, ephemeral, acl=acl)
    if kind in _DELETES:
        return LoggedOperation("delete", record.text())
    if kind == SET_DATA:
        return LoggedOperation("set", record.text(), record.buffer(), record.number())
    if kind == CHECK:
        # ZooKeeper logs the znode's version plus one, even if the check accepts any version.
        return LoggedOperation("check", record.text(), None, record.number() - 1)
    if kind == SET_ACL:
        return LoggedOperation("set_acl", record.text(), acl=record.acl())
    if kind == ERROR:
        return LoggedOperation("error", error=record.number())
    return LoggedOperation("other")


def _transaction(data: bytes) -> Transaction:
    session, cxid, zxid, time_ms, kind = _TXN_HEADER.unpack_from(data)
    record = _Reader(data[_TXN_HEADER.size :])
    failed = False
    name = "other"
    operations: tuple[LoggedOperation, ...]
    if kind == MULTI:
        name = "multi"
        parts = [(record.number(), record.buffer() or b"") for _ in range(max(record.number(), 0))]
        operations = tuple(_operation(part, _Reader(body)) for part, body in parts)
        failed = any(operation.kind == "error" for operation in operations)
    elif kind == CLOSE_SESSION:
        name = "close_session"
        count = record.number() if not record.is_done() else 0
        operations = tuple(LoggedOperation("delete", record.text()) for _ in range(max(count, 0)))
    elif kind == CREATE_SESSION:
        name, operations = "create_session", ()
    else:
        operation = _operation(kind, record)
        name, operations, failed = operation.kind, (operation,), operation.kind == "error"
    return Transaction(zxid, session & (2**64 - 1), cxid, time_ms, name, operations, failed)


def read_log(path: Path) -> Iterator[Transaction]:
    """Yield the transactions of one log file.

    A record that is cut off at the end of the file is ignored: the server was killed while
    it wrote the record.

    Raises:
        TornLogError: the file is not a log, is damaged before its end, or is too large.
    """
    if path.stat().st_size > LOG_BYTES_MAX:
        raise TornLogError(f"{path.name} has more than {LOG_BYTES_MAX:,} bytes")
    data = path.read_bytes()
    if len(data) < _FILE_HEADER.size:
        return  # The server created the file and has written nothing yet.
    magic, _, _ = _FILE_HEADER.unpack_from(data)
    if magic != _MAGIC:
        raise TornLogError(f"{path.name} is not a transaction log")
    at = _FILE_HEADER.size
    while (record := _record_at(data, at)) is not None:
        try:
            yield _transaction(record)
        except (struct.error, IndexError):
            raise TornLogError(f"{path.name}: a record at {at} cannot be decoded") from None
        at += _ENTRY.size + len(record) + 1
    if _is_damaged(data, at):
        raise TornLogError(f"{path.name}: a damaged record at {at}")


def read_new(path: Path, at: int) -> tuple[list[Transaction], int]:
    """Return the transactions from byte `at` on, and where the next one will begin.

    For a log that its server still writes: a record that is not complete is left for the next call.

    Raises:
        TornLogError: a record cannot be decoded.
        OSError: the file cannot be read.
    """
    transactions: list[Transaction] = []
    at = max(at, _FILE_HEADER.size)
    with path.open("rb") as file:
        size = _NEW_BYTES
        while True:
            file.seek(at)
            data = file.read(size)
            done = 0
            while (record := _record_at(data, done)) is not None:
                try:
                    transactions.append(_transaction(record))
                except (struct.error, IndexError):
                    raise TornLogError(f"{path.name}: a record at {at + done}") from None
                done += _ENTRY.size + len(record) + 1
            at += done
            if len(data) < size or (not done and not data.strip(b"\0")):
                return transactions, at
            size = _NEW_BYTES if done else size * 2  # A record may be larger than what was read.


def _record_at(data: bytes, at: int) -> bytes | None:
    """Return the record whose entry begins at `at`; None if there is no intact record."""
    if at + _ENTRY.size > len(data):
        return None
    checksum, length = _ENTRY.unpack_from(data, at)
    start, end = at + _ENTRY.size, at + _ENTRY.size + length
    if length <= 0 or end >= len(data) or data[end] != _END_OF_RECORD:
        return None
    record = data[start:end]
    return record if zlib.adler32(record) == checksum else None


def _is_damaged(data: bytes, at: int) -> bool:
    """Return whether the log is damaged at `at`; False if it ends there.

    A log ends with zeros or, if its server was killed, with an incomplete record. The log is
    damaged if the record at `at` has an end byte but a wrong checksum, or if an intact record comes
    after it.
    """
    if at + _ENTRY.size <= len(data):
        _, length = _ENTRY.unpack_from(data, at)
        end = at + _ENTRY.size + length
        if length > 0 and end < len(data) and data[end] == _END_OF_RECORD:
            return True
    used = len(data.rstrip(b"\0"))
    # The checksums of all candidates together may cover each byte this often. A log that needs more
    # is not the log of a killed server: in such a log, hardly anything looks like an entry.
    budget = 4 * len(data)
    for match in _ENTRY_START.finditer(data, at + 1, used):
        _, length = _ENTRY.unpack_from(data, match.start())
        end = match.start() + _ENTRY.size + length
        if end >= len(data) or data[end] != _END_OF_RECORD:
            continue
        budget -= length
        if budget < 0 or _record_at(data, match.start()) is not None:
            return True
    return False


def log_files(data_dir: Path) -> list[Path]:
    """Return the log files of one ZooKeeper member, oldest first.

    `data_dir` is ZooKeeper's dataDir, which has the logs in `version-2`, or a folder of logs.

    Raises:
        TornLogError: a file has the name of a log, but no zxid in its name.
    """
    folder = data_dir / "version-2" if (data_dir / "version-2").is_dir() else data_dir
    files = list(folder.glob("log.*"))
    for path in files:
        if not _LOG_NAME.fullmatch(path.name):
            raise TornLogError(f"{path.name!r} is not the name of a transaction log")
    return sorted(files, key=lambda path: int(path.suffix[1:], 16))


def read_transactions(data_dir: Path) -> list[Transaction]:
    """Return the transactions of one ZooKeeper member, by zxid; see `log_files` for `data_dir`."""
    seen: dict[int, Transaction] = {}
    for path in log_files(data_dir):
        for transaction in read_log(path):
            seen[transaction.zxid] = transaction
    return [seen[zxid] for zxid in sorted(seen)]
