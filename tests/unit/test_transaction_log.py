"""ZooKeeper's transaction log is read as ZooKeeper wrote it; damage is told, a torn end is not."""

from __future__ import annotations

import struct
import zlib
from pathlib import Path

import pytest

from chaos.witness import TornLogError, Transaction, read_log, read_transactions

RECORDED = Path(__file__).parents[1] / "data" / "zookeeper_transactions.bin"
HEADER = struct.pack(">4siq", b"ZKLG", 2, 0)


def _text(value: str) -> bytes:
    return struct.pack(">i", len(value)) + value.encode()


def _entry(zxid: int, kind: int, body: bytes) -> bytes:
    record = struct.pack(">qiqqi", 0x100000000000001, 7, zxid, 1_700_000_000_000, kind) + body
    return struct.pack(">qi", zlib.adler32(record), len(record)) + record + b"B"


def _set(zxid: int) -> bytes:
    return _entry(zxid, 5, _text("/a") + _text(f"{zxid}") + struct.pack(">i", zxid))


def _write(folder: Path, data: bytes, name: str = "log.1") -> Path:
    path = folder / name
    path.write_bytes(data)
    return path


def _only(folder: Path, entry: bytes) -> Transaction:
    (transaction,) = read_log(_write(folder, HEADER + entry))
    return transaction


def _recorded() -> list[Transaction]:
    return list(read_log(RECORDED))


def test_a_real_log_is_read_to_its_end() -> None:
    """Every transaction of a real server's log is there, in the order of its zxids."""
    zxids = [transaction.zxid for transaction in _recorded()]
    assert zxids == list(range(1, len(zxids) + 1))
    assert len(zxids) > 30


def test_a_real_fenced_multi_shows_check_counter_outcomes_and_effects() -> None:
    """The demanded version is the one that was asked for, not the one that the log stores."""
    multi = next(
        t
        for t in _recorded()
        if any(o.kind == "create" and o.path == "/brokers/topics/orders" for o in t.operations)
    )
    assert multi.kind == "multi"
    assert not multi.failed
    first, second, third = multi.operations[:3]
    assert (first.kind, first.path, first.version) == ("check", "/controller_epoch", 1)
    assert (second.kind, second.path) == ("set", "/bridgehead/commit")
    assert (third.kind, third.path) == ("create", "/bridgehead/outcomes/0000000002")


def test_a_real_registration_is_ephemeral() -> None:
    """Ephemeral znodes are told from others."""
    made = {o.path: o.ephemeral for t in _recorded() for o in t.operations if o.kind == "create"}
    assert made["/brokers/ids/1"]
    assert not made["/brokers/topics/orders"]


def test_a_refused_multi_is_marked_failed(tmp_path: Path) -> None:
    """Its sub-records are errors, and it changed nothing."""
    body = struct.pack(">i", 2)
    for code in (-103, -2):
        body += struct.pack(">i", -1) + struct.pack(">i", 4) + struct.pack(">i", code)

    transaction = _only(tmp_path, _entry(1, 14, body))
    assert transaction.failed
    assert [operation.error for operation in transaction.operations] == [-103, -2]


def test_a_closed_session_lists_what_it_took_along(tmp_path: Path) -> None:
    """That is how an expiry deletes /controller."""
    body = struct.pack(">i", 1) + _text("/controller")
    transaction = _only(tmp_path, _entry(1, -11, body))
    assert transaction.kind == "close_session"
    assert [(o.kind, o.path) for o in transaction.operations] == [("delete", "/controller")]


def test_the_digest_behind_a_record_is_not_part_of_it(tmp_path: Path) -> None:
    """ZooKeeper 3.6 and later append a digest of their tree."""
    body = _text("/a") + _text("x") + struct.pack(">i", 4) + struct.pack(">iq", 2, 12345)
    (operation,) = _only(tmp_path, _entry(1, 5, body)).operations
    assert (operation.path, operation.data, operation.version) == ("/a", b"x", 4)


def test_the_preallocated_tail_is_the_end(tmp_path: Path) -> None:
    """Zeros are no transactions."""
    path = _write(tmp_path, HEADER + _set(1) + bytes(4096))
    assert [t.zxid for t in read_log(path)] == [1]


@pytest.mark.parametrize("kept", [13, 30, 50])
def test_a_torn_end_is_left_out(tmp_path: Path, kept: int) -> None:
    """A server that was killed while it wrote leaves half a record before the zeros."""
    path = _write(tmp_path, HEADER + _set(1) + _set(2)[:kept] + bytes(4096))
    assert [t.zxid for t in read_log(path)] == [1]


def test_a_flipped_bit_is_refused(tmp_path: Path) -> None:
    """Damage before the end is not evidence, and is not passed over in silence."""
    data = bytearray(HEADER + _set(1) + _set(2) + bytes(64))
    data[40] ^= 1
    with pytest.raises(TornLogError, match="damaged record at 16"):
        list(read_log(_write(tmp_path, bytes(data))))


@pytest.mark.parametrize("length", [0x7FFFFFFF, 0x01000000, 70, 0])
def test_a_damaged_length_does_not_hide_what_follows(tmp_path: Path, length: int) -> None:
    """A length that leads astray looks like a torn end; an intact record behind it tells."""
    data = bytearray(HEADER + _set(1) + _set(2) + _set(3) + bytes(64))
    second = len(HEADER) + len(_set(1))
    data[second + 8 : second + 12] = struct.pack(">i", length)
    with pytest.raises(TornLogError, match=f"at {second}"):
        list(read_log(_write(tmp_path, bytes(data))))


def test_a_damaged_record_before_zeros_and_more_is_refused(tmp_path: Path) -> None:
    """Zeros alone do not make an end: what follows them counts."""
    torn = _set(2)[:30] + bytes(len(_set(2)) - 30)
    path = _write(tmp_path, HEADER + _set(1) + torn + bytes(128) + _set(3))
    with pytest.raises(TornLogError, match="damaged record"):
        list(read_log(path))


def test_a_multi_beyond_its_own_bytes_is_not_understood(tmp_path: Path) -> None:
    """The checksum is right and the content is not: no guess is made."""
    body = struct.pack(">iii", 1, 5, 1000)
    with pytest.raises(TornLogError, match="not understood"):
        _only(tmp_path, _entry(1, 14, body))


def test_another_file_is_refused(tmp_path: Path) -> None:
    """A file that is no log is named."""
    with pytest.raises(TornLogError, match="not a transaction log"):
        list(read_log(_write(tmp_path, b"PK\x03\x04" + bytes(100))))


def test_several_files_make_one_history(tmp_path: Path) -> None:
    """Files are ordered by the zxid in their names, which is hexadecimal."""
    (tmp_path / "version-2").mkdir()
    _write(tmp_path / "version-2", HEADER + _set(10) + bytes(64), "log.a")
    _write(tmp_path / "version-2", HEADER + _set(9) + bytes(64), "log.9")
    _write(tmp_path / "version-2", HEADER + _set(16) + bytes(64), "log.10")
    assert [t.zxid for t in read_transactions(tmp_path)] == [9, 10, 16]
